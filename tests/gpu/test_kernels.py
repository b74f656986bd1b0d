"""Every known cheat gets its verdict on the GPU; correct kernels are accepted; nobody else is harmed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab.judge.pool import JudgePool

from .kernels import BAD, FOLDER, GOOD, job

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def pool() -> Iterator[JudgePool]:
    with JudgePool("cuda") as pool:
        yield pool


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_a_bad_kernel_gets_its_verdict(pool: JudgePool, path: Path) -> None:
    task, expected = job(path)
    verdict = pool.submit(task).result(timeout=120)
    assert verdict.status.value in expected, verdict.evidence
    assert verdict.evidence
    assert verdict.timing is None


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_a_good_kernel_is_accepted(pool: JudgePool, path: Path) -> None:
    task, _ = job(path)
    verdict = pool.submit(task).result(timeout=120)
    assert verdict.status.is_correct, (verdict.status, verdict.evidence)
    assert verdict.max_error is not None
    assert verdict.max_error <= 1
    assert verdict.timing is not None


@pytest.mark.parametrize("name", ["writes_far_away", "infinite_loop", "failed_assertion", "traps"])
def test_a_fault_harms_neither_this_process_nor_the_next_kernel(pool: JudgePool, name: str) -> None:
    import torch

    mine = torch.arange(1 << 20, device="cuda")
    good, _ = job(FOLDER / "good_kernels" / "plain_add.cu")
    assert pool.submit(good).result(timeout=120).status.is_correct
    bad, expected = job(FOLDER / "bad_kernels" / f"{name}.cu")
    begin = time.perf_counter()
    assert pool.submit(bad).result(timeout=120).status.value in expected
    fault_s = time.perf_counter() - begin
    again = good.kernel.tuned(BLOCK=128)
    verdict = pool.submit(type(good)(good.region, again, limits=good.limits)).result(timeout=120)
    assert verdict.status.value in ("faster", "slower", "duplicate"), verdict.evidence
    assert torch.equal(mine, torch.arange(1 << 20, device="cuda"))
    # The limit of a call is one second; ending the process and having the next one ready takes no more than 2.
    assert fault_s < 1.0 + 2.0 + 1.5
