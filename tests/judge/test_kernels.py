"""Every known cheat gets its verdict; correct but unusual kernels are accepted.

A kernel file says its region, and a bad one its verdicts (usually one): ``// expect: wrong``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.stats import InputStats

from .regions import region

FOLDER = Path(__file__).parent
BAD = sorted((FOLDER / "bad_kernels").glob("*.cpp"))
GOOD = sorted((FOLDER / "good_kernels").glob("*.cpp"))
# compile_s 0: stock is eager alone, which is enough to judge correctness and saves minutes.
QUICK = Limits(call_s=1.5, time_s=0.2, compile_s=0.0)
ONES = InputStats(1.0, 1.0, 1.0, 0.0)


@pytest.fixture(scope="module")
def pool() -> Iterator[JudgePool]:
    with JudgePool("cpu", threads=2) as pool:
        yield pool


def job(path: Path) -> tuple[Job, set[str]]:
    source = path.read_text()
    fields = dict(re.findall(r"^// (region|expect|stats): (.*)$", source, re.MULTILINE))
    target = region(fields["region"])
    stats = ()
    if fields.get("stats") == "ones":
        stats = (InputStats(-3.0, 3.0), ONES)
    kernel = Kernel(source, target.hash, "cpu")
    return Job(target, kernel, stats, limits=QUICK), set(fields.get("expect", "").split())


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_a_bad_kernel_gets_its_verdict(pool: JudgePool, path: Path) -> None:
    task, expected = job(path)
    verdict = pool.submit(task).result(timeout=120)
    assert verdict.status.value in expected, verdict.evidence
    assert verdict.evidence
    assert verdict.timing is None


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_a_good_kernel_is_accepted(pool: JudgePool, path: Path) -> None:
    """Proven only: what timing finds depends on the machine, and the pool's tests time such kernels."""
    task, _ = job(path)
    verdict = pool.submit(dataclasses.replace(task, timed=False)).result(timeout=120)
    assert verdict.status is Status.CORRECT, (verdict.status, verdict.evidence)
    assert verdict.max_error is not None
    assert verdict.max_error <= 1
    assert verdict.check_count > 30
