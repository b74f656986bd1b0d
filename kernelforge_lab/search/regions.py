"""One region's search: its stock, its tree, what is still to be gained and why it stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ..capture.workload import Roofs, WorkloadRegion
from . import reward
from .budget import Ledger
from .tree import Node, Tree

# Gains below this fraction of the step are not worth a compilation, whatever the noise.
_WORTH: Final = 0.005

# Expansions without a new best after which a region has said all it has to say.
_STAGNANT: Final = 24

# Before anything is known: an expansion improves with probability 1/2 and then wins half of what is left.
_FRESH_WIN: Final = 0.5
_USUAL_PART: Final = 0.5

# Regions whose tensors fit here are bound by launch and call costs, not by memory traffic.
_TINY_BYTES: Final = 64 * 1024

# A floor this much above the pure memory floor comes from arithmetic.
_COMPUTE_BOUND: Final = 1.05


def bottleneck_of(item: WorkloadRegion, roofs: Roofs) -> str:
    """``memory``, ``compute`` or ``latency``: the class whose strategies and experience apply."""
    size = item.region.bytes_floor
    if size < _TINY_BYTES:
        return "latency"
    memory_us = size / (roofs.bandwidth_at(size) * 1e3)
    return "compute" if item.floor_us > _COMPUTE_BOUND * memory_us else "memory"


@dataclass
class RegionSearch:
    """Mutable state of one region. Times in µs.

    ``stock_us`` is best stock once prepared, before that the time in the model; ``floor_us`` the
    roofline limit, or what the judge measured if that is lower; ``wanted`` when the person named the
    region, which then is tried however small it is; ``cut_short`` when only the budget ended its search;
    ``hints`` what a person said about the kernels below a node. ``state`` is a RegionState's, and between
    ``searching`` and ``done`` also ``ending`` (searched) and ``final`` (winner being re-measured).
    """

    item: WorkloadRegion
    bottleneck: str
    wanted: bool = False
    state: str = "waiting"
    reason: str = ""
    stock: str = ""
    stock_us: float = 0.0
    floor_us: float = 0.0
    noise: float = 0.0
    tree: Tree | None = None
    wins: int = 0
    won: float = 0.0
    busy_s: float = 0.0
    paid_usd: float = 0.0
    tries: int = 0
    cut_short: bool = False
    hints: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stock_us = self.stock_us or self.item.time_us
        self.floor_us = self.floor_us or self.item.floor_us

    @property
    def hash(self) -> str:
        return self.item.region.hash

    @property
    def is_active(self) -> bool:
        return self.state in ("waiting", "searching")

    @property
    def reachable_us(self) -> float:
        return reward.reachable_us(self.floor_us, self.bottleneck)

    @property
    def headroom(self) -> float:
        """t0/t*; at most 1 when stock already is where kernels can get."""
        return self.stock_us / self.reachable_us if self.reachable_us > 0 else math.inf

    def hint_for(self, node: int) -> str:
        """What a person said about this node or the nearest one above it."""
        assert self.tree is not None
        return next((self.hints[at] for at in self.tree.ancestors(node) if at in self.hints), "")

    @property
    def best(self) -> Node | None:
        if self.tree is None or self.tree.best is None:
            return None
        return self.tree.nodes[self.tree.best]

    @property
    def best_us(self) -> float:
        """The best kernel's time in units of this region's stock measurement (paired ratio)."""
        best = self.best
        return self.stock_us / best.speedup if best and best.speedup else self.stock_us

    @property
    def remaining(self) -> float:
        """Fraction of the step that could still be gained: p·(t_best - t*)/t0."""
        if self.stock_us <= 0:
            return 0.0
        return self.item.share * max(0.0, self.best_us - self.reachable_us) / self.stock_us

    @property
    def expected_gain(self) -> float:
        """p·E[(t_best - t_next)+]/t0 of one more expansion.

        The chance to improve fades with the expansions since the last new best; the part of the
        remaining gain that an improvement brings is this region's own average.
        """
        since = self.tree.since_best if self.tree else 0
        chance = _FRESH_WIN * 2 / (2 + since)
        part = (_USUAL_PART + self.won) / (1 + self.wins)
        return self.remaining * chance * part

    def improved(self, before: float) -> None:
        """A new best was found when ``before`` was the remaining gain: learn how much it brought."""
        self.wins += 1
        self.won += 1 - self.remaining / before if before > 0 else 0.0

    def reward_of_stock(self) -> float:
        return reward.of_speedup(1.0, self.headroom)

    def stop_reason(self) -> str | None:
        """Why this region needs no further kernel, in plain words; None to go on."""
        if self.wanted and not self.tries:
            return None
        if self.best_us <= self.reachable_us:
            who = "the best kernel" if self.best else "stock PyTorch"
            return f"{who} is at the limit of the machine ({_percent(self.floor_us / self.best_us)} of it)"
        if self.remaining < max(_WORTH, self.noise * self.item.share):
            return f"at most {_percent(self.remaining)} of the step is left to gain"
        if self.tree and self.tree.since_best >= _STAGNANT:
            return f"no faster kernel in the last {self.tree.since_best} tries"
        return None


def next_region(regions: Iterable[RegionSearch], ledger: Ledger, usual_s: float) -> RegionSearch | None:
    """The active region whose next expansion brings the most per unit of budget.

    ``usual_s`` is the usual time of an expansion, for regions without experience of their own.
    """

    def worth(region: RegionSearch) -> float:
        seconds = (region.busy_s + usual_s) / (region.tries + 1)
        usd = region.paid_usd / region.tries if region.tries else 0.0
        return region.expected_gain / ledger.cost(seconds, usd)

    return max((region for region in regions if region.is_active), key=worth, default=None)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %" if fraction < 0.1 else f"{100 * min(fraction, 1.0):.0f} %"
