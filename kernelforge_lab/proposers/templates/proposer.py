"""The templates proposer: every strategy is a correct kernel for the whole region."""

from __future__ import annotations

import os
from functools import lru_cache

from ...kernels.kernel import Kernel
from ...kernels.region import Region
from ..base import Ask
from .cpp import CppPrinter
from .cuda import CudaPrinter
from .lowering import Lowered, Unsupported, lower
from .plan import Plan, Strategy
from .schedule import Scheduler

# Most promising first: the search tries root children in this order.
STRATEGIES = (
    Strategy("rows_keep", "one pass over memory per row, values kept in cache between passes", cache="all"),
    Strategy("rows", "rows in parallel, cheap values recomputed in each pass", cache="none"),
    Strategy("rows_keep_heavy", "rows in parallel, only transcendental values kept", cache="heavy"),
    Strategy("lanes", "neighbouring rows side by side in vector lanes", cache="heavy", lanes=True),
    Strategy("split_row", "all threads share one row, partial results combined in order", split=True),
    Strategy("staged", "reductions first, then one elementwise sweep", fuse_rows=False),
    Strategy("flat", "one elementwise sweep"),
    Strategy("tiled", "transposing loops in cache-sized tiles", tile=True),
    Strategy("team_keep", "a team of threads per row, the row kept in registers", cache="all", target="cuda"),
    Strategy(
        "team_stream",
        "a team of threads per row in registers, results past the caches",
        cache="all",
        stream=True,
        target="cuda",
    ),
    Strategy("team", "a team of threads per row, the row read again from cache", target="cuda"),
    Strategy(
        "blocks",
        "several blocks per row, mean and variance in one sweep",
        split=True,
        moments=True,
        target="cuda",
    ),
    Strategy(
        "blocks_stream",
        "several blocks per row, the second sweep from L2, results past the caches",
        split=True,
        moments=True,
        stream=True,
        target="cuda",
    ),
    Strategy(
        "cluster",
        "a cluster of blocks per row, the row kept in their shared memory",
        split=True,
        moments=True,
        stream=True,
        cluster=True,
        target="cuda",
    ),
    Strategy(
        "relay",
        "resident blocks finish each row from L2 while taking the next row's statistics",
        split=True,
        moments=True,
        stream=True,
        relay=True,
        target="cuda",
    ),
    Strategy("columns", "a thread per row, neighbouring rows side by side", lanes=True, target="cuda"),
    Strategy("staged_teams", "reductions first, then one elementwise sweep", fuse_rows=False, target="cuda"),
    Strategy("flat", "one elementwise sweep in 16-byte vectors", target="cuda"),
    Strategy("flat_stream", "one elementwise sweep, everything past the caches", stream=True, target="cuda"),
)


def strategy_of(name: str, target: str) -> Strategy | None:
    return next((s for s in STRATEGIES if s.name == name and s.target == target), None)


class TemplatesProposer:
    """Implements proposers.base.Proposer for the ``cpu`` and ``cuda`` targets."""

    name = "templates"

    def refuses(self, region: Region, target: str) -> str | None:
        if target not in {s.target for s in STRATEGIES}:
            return f"templates write no {target} kernels"
        return _refusal(region)

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        """Root children: every strategy that gives another program than those before it."""
        if parent is not None or self.refuses(region, target) is not None:
            return ()
        return _distinct(region, target)

    def propose(self, ask: Ask) -> Kernel | None:
        strategy = strategy_of(ask.strategy, ask.target)
        if strategy is None or self.refuses(ask.region, ask.target) is not None:
            return None
        source = write(ask.region, strategy, ask.threads or os.cpu_count() or 1)
        return Kernel(source, ask.region.hash, ask.target, (), self.name, strategy.name, strategy.idea)


def write(region: Region, strategy: Strategy, threads: int) -> str:
    """Source of one strategy. Raises Unsupported when the region or the plan does not suit it."""
    return _print(Scheduler(lower(region), region.outputs, strategy).plan(), region, strategy, threads)


def _print(plan: Plan, region: Region, strategy: Strategy, threads: int) -> str:
    if strategy.target == "cuda":
        return CudaPrinter(plan, region, strategy).source()
    return CppPrinter(plan, region, strategy, threads).source()


@lru_cache(maxsize=512)
def _refusal(region: Region) -> str | None:
    if not region.results:
        return "the region returns nothing"
    if any(spec.numel == 0 for spec in (*region.inputs, *region.outputs)):
        return "empty tensors: nothing to compute"
    try:
        lower(region)
    except Unsupported as reason:
        return str(reason)
    return None


@lru_cache(maxsize=512)
def _distinct(region: Region, target: str) -> tuple[str, ...]:
    lowered: Lowered = lower(region)
    seen: set[str] = set()
    names: list[str] = []
    for strategy in STRATEGIES:
        if strategy.target != target:
            continue
        plan: Plan = Scheduler(lowered, region.outputs, strategy).plan()
        if not _uses(plan, strategy):
            continue
        try:
            text = _print(plan, region, strategy, 4).split("\n", 2)[2]
        except Unsupported:
            continue
        if text not in seen:
            seen.add(text)
            names.append(strategy.name)
    return tuple(names)


def _uses(plan: Plan, strategy: Strategy) -> bool:
    """Whether the plan really has what the strategy is named after."""
    if strategy.tile:
        return any(p.tile for n in plan.nests for p in n.passes)
    if strategy.lanes:
        return any(n.lane is not None for n in plan.nests)
    reduces = any(p.finished for n in plan.nests for p in n.passes)
    if strategy.name.startswith("flat") or not reduces:
        return strategy.name.startswith("flat") and not reduces
    if strategy.split:
        return any(
            n.split and n.row_count < (_FEW_ROWS_CUDA if strategy.target == "cuda" else 64)
            for n in plan.nests
        )
    return True


# Up to this many rows several blocks per row can still fill a large GPU better than one.
_FEW_ROWS_CUDA = 512
