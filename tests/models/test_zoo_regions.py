"""Every region of the models people bring gets a kernel from the templates that the judge proves correct.

The judge's whole proof (oracle, families of inputs, guards, repeats) without its clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernelforge_lab.capture.profile import Clock
from kernelforge_lab.capture.trace import GraphBackend, through
from kernelforge_lab.judge.job import Job
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.stats import InputStats
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer

from .zoo import ZOO

THREADS = 2
TEMPLATES = TemplatesProposer()
# What may stay without a kernel, and the operator that is the reason.
DECLARED = ("scatter", "solve_triangular")

Regions = dict[str, tuple[Region, tuple[InputStats, ...]]]


@pytest.fixture(scope="module")
def pool() -> Iterator[JudgePool]:
    with JudgePool("cpu", threads=THREADS) as pool:
        yield pool


def regions_of(name: str, dtype: torch.dtype) -> Regions:
    """Regions of one call, with the statistics of what flowed into them."""
    model, args, kwargs = ZOO[name]()
    clock = Clock(looking=True)
    backend = GraphBackend(clock.dress)
    with torch.no_grad():
        through(model.to(dtype), backend)(*args, **kwargs)
    assert not clock.wrong, "tracing promised something else than what ran"
    assert not backend.notes
    found = {key: region for split in backend.graphs for key, region in split.regions.items()}
    return {key: (region, clock.stats.get(key, ())) for key, region in found.items()}


def problem_with(pool: JudgePool, region: Region, stats: tuple[InputStats, ...]) -> str:
    """Why no strategy of the templates gives an accepted kernel; "" when one does."""
    refusal = TEMPLATES.refuses(region, "cpu")
    if refusal is not None:
        return "" if any(word in refusal for word in DECLARED) else refusal
    said = []
    for strategy in TEMPLATES.strategies(region, "cpu", None):
        kernel = TEMPLATES.propose(Ask(region, "cpu", strategy, threads=THREADS))
        assert kernel is not None
        verdict = pool.submit(Job(region, kernel, stats, timed=False)).result(timeout=60)
        if verdict.status is Status.CORRECT and verdict.check_count > 0:
            return ""
        said.append(f"{strategy}: {verdict.status.value}: {verdict.evidence}")
    return "; ".join(said) or "no strategy"


@pytest.mark.parametrize(
    "name,dtype",
    [*((name, torch.float32) for name in ZOO), ("gemma4", torch.bfloat16)],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_every_region_gets_a_proven_kernel(pool: JudgePool, name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    regions = regions_of(name, dtype)
    assert len(regions) >= 4
    unserved = {
        f"{key} {region.title}": why
        for key, (region, stats) in regions.items()
        if (why := problem_with(pool, region, stats))
    }
    assert not unserved
