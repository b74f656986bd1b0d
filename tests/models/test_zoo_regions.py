"""Every region of the models people bring gets a kernel from the templates that the judge proves correct.

The judge's own proof (oracle, families of inputs, guards, repeats) runs here whole; only its clock does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernelforge_lab.capture.profile import Clock
from kernelforge_lab.capture.trace import GraphBackend, through
from kernelforge_lab.judge.candidate import CandidateDied
from kernelforge_lab.judge.checker import Checker
from kernelforge_lab.judge.checks import Failed
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.trial import Trial
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.stats import InputStats
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer

from .zoo import ZOO

THREADS = 2
TEMPLATES = TemplatesProposer()
LIMITS = Limits(compile_s=0)
# What may stay without a kernel, and the operator that is the reason.
DECLARED = ("scatter", "solve_triangular")

Regions = dict[str, tuple[Region, tuple[InputStats, ...]]]


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    checker = Checker("cpu", THREADS)
    yield checker
    checker.close()


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


def prove(checker: Checker, job: Job) -> str:
    """Why the judge does not accept the job's kernel; "" when it does."""
    built = checker.target.build(job.kernel, job.region)
    bench = checker._bench(job.region, job.stats, job.limits, job.seed)
    if built.foreign or bench.refused:
        return bench.refused or f"it uses {built.foreign}"
    arena = bench.arena(built.plan.workspaces)
    candidate = checker._start(built, arena, bench)
    try:
        trial = Trial(job, bench, candidate, arena, atomics=False)
        trial.prove()
    except (Failed, CandidateDied) as stop:
        return f"{stop.status.value}: {stop.evidence}"
    finally:
        checker._end(candidate)
    return "" if sum(trial.proof.checks.values()) > 0 else "nothing was checked"


def problem_with(checker: Checker, region: Region, stats: tuple[InputStats, ...]) -> str:
    """Why no strategy of the templates gives an accepted kernel; "" when one does."""
    refusal = TEMPLATES.refuses(region, "cpu")
    if refusal is not None:
        return "" if any(word in refusal for word in DECLARED) else refusal
    said = []
    for strategy in TEMPLATES.strategies(region, "cpu", None):
        kernel = TEMPLATES.propose(Ask(region, "cpu", strategy, threads=THREADS))
        assert kernel is not None
        why = prove(checker, Job(region, kernel, stats, limits=LIMITS))
        if not why:
            return ""
        said.append(f"{strategy}: {why}")
    return "; ".join(said) or "no strategy"


@pytest.mark.parametrize(
    "name,dtype",
    [*((name, torch.float32) for name in ZOO), ("gemma4", torch.bfloat16)],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_every_region_gets_a_proven_kernel(checker: Checker, name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    regions = regions_of(name, dtype)
    assert len(regions) >= 4
    unserved = {
        f"{key} {region.title}": why
        for key, (region, stats) in regions.items()
        if (why := problem_with(checker, region, stats))
    }
    assert not unserved
