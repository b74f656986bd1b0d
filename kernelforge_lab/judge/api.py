"""Judge one kernel, from a script or the command line."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.stats import InputStats
from .job import Job
from .pool import JudgePool
from .verdict import Verdict


def judge_one(
    region: Region,
    kernel: Kernel,
    stats: Sequence[InputStats] = (),
    *,
    seed: int = 0,
    threads: int | None = None,
) -> Verdict:
    """The full verdict on ``kernel`` for ``region``, as for a finalist: proven on fresh seeds.

    Raises ForgeError when the judge itself cannot work (no compiler for example).
    """
    with JudgePool(kernel.target, threads=threads) as pool:
        return pool.submit(Job(region, kernel, tuple(stats), seed=seed, finalist=True)).result()
