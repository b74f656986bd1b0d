"""Statistics of paired timing: block log-ratios, their bootstrap interval, and what counts as faster.

Pure functions over floats, without torch, so that their properties can be tested on synthetic noise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BOOTSTRAP_ROUNDS: Final = 400
# Fewer quads than this give an interval too optimistic to stop or decide on.
QUADS_MIN: Final = 8
# judging.md: differences below twice the interval are ties, and ties go to stock.
TIE_WIDTHS: Final = 2.0
RACE_FACTOR: Final = 1.3
# A launch below this measures Python and the call, not the kernel; it is ranked as if it took this long.
LAUNCH_BOUND_US: Final = 3.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Median of log(stock/kernel) with its 95 % bootstrap bounds (natural logarithms)."""

    median: float
    low: float
    high: float
    samples: int

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def shifted(self, by: float) -> Interval:
        return Interval(self.median + by, self.low + by, self.high + by, self.samples)

    @property
    def speedup(self) -> tuple[float, float, float]:
        """(estimate, low, high) as ratios stock/kernel."""
        return math.exp(self.median), math.exp(self.low), math.exp(self.high)


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def bootstrap(log_ratios: Sequence[float], seed: int = 0, rounds: int = BOOTSTRAP_ROUNDS) -> Interval:
    """95 % percentile-bootstrap interval of the median (Efron 1979). Needs at least one value.

    With under 20 values the percentile interval of a median is too narrow (about 90 % coverage at
    n = 8), so it is widened by Student's small-sample factor.
    """
    count = len(log_ratios)
    if count == 0:
        raise ValueError("no samples to bootstrap")
    draw = random.Random(seed)
    values = list(log_ratios)
    medians = sorted(median(draw.choices(values, k=count)) for _ in range(rounds))
    centre = median(values)
    low = medians[int(0.025 * rounds)]
    high = medians[min(rounds - 1, int(0.975 * rounds))]
    widen = 1 + 2.5 / count
    low, high = centre - (centre - low) * widen, centre + (high - centre) * widen
    if count == 1:
        low, high = -math.inf, math.inf
    return Interval(centre, low, high, count)


def is_faster(interval: Interval, noise: float = 0.0) -> bool:
    """Whether the kernel beats stock by more than a tie.

    ``noise`` is the A/A control (log-ratio of stock against itself).
    """
    if interval.samples < QUADS_MIN:
        return False
    return interval.median > TIE_WIDTHS * max(interval.half_width, noise) and interval.low > 0


def surely_worse(interval: Interval, stock_us: float, best_us: float | None) -> bool:
    """Racing: even the optimistic end of the interval is 1.3× slower than the best kernel (or stock)."""
    rival_us = stock_us if best_us is None else min(stock_us, best_us)
    optimistic_us = stock_us / math.exp(interval.high)
    return optimistic_us > RACE_FACTOR * rival_us


def rank_us(kernel_us: float) -> float:
    """The time a kernel is ranked by: launch-bound ones count as ``LAUNCH_BOUND_US``."""
    return max(kernel_us, LAUNCH_BOUND_US)
