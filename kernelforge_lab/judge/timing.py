"""Paired timing: blocks of stock and candidate interleaved A B B A, on the checker's clock.

Both sides rotate through the same places, so inputs and outputs come from equally cold memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from .arena import Arena
from .candidate import Candidate
from .statistics import QUADS_MIN, Interval, bootstrap, median

if TYPE_CHECKING:
    import torch

# Long against the round trip to the runner (about 40 µs, subtracted), short against drifts of the clock rate.
_BLOCK_S: Final = 0.002
_CALLS_MAX: Final = 4096
# Longer than threads of the other side spin after their last loop (see candidate.OMP_ENVIRONMENT).
_SETTLE_S: Final = 0.0008
_EMPTY_BLOCKS: Final = 15
_CALIBRATION_CALLS: Final = 4
_LOOK_EVERY: Final = 4


class Side(Protocol):
    """Something whose launches can be timed in blocks. Places count from the first timed one.

    ``calls_max`` is the most launches of one block.
    """

    calls_max: int

    def warm(self, place: int) -> None: ...

    def block(self, start: int, calls: int) -> float:
        """Seconds of ``calls`` launches rotating through the places from ``start``."""


class StockSide:
    """A stock implementation, called in the checker on the arena's own inputs.

    Its last outputs are kept per place, so that its output memory rotates as the candidate's does.
    """

    calls_max = _CALLS_MAX

    def __init__(self, function: Callable[..., Sequence[torch.Tensor]], arena: Arena) -> None:
        self._function = function
        places = [arena.layout.places[i] for i in arena.layout.timed]
        self._inputs = [[arena.tensor(slot) for slot in place.of_kind("input")] for place in places]
        self._outputs: list[object] = [None] * len(places)

    def warm(self, place: int) -> None:
        self._outputs[place % len(self._inputs)] = self._function(*self._inputs[place % len(self._inputs)])

    def block(self, start: int, calls: int) -> float:
        function, inputs, outputs, count = self._function, self._inputs, self._outputs, len(self._inputs)
        turn = [(start + i) % count for i in range(calls)]
        begin = time.perf_counter()
        for place in turn:
            outputs[place] = function(*inputs[place])
        return time.perf_counter() - begin


class CandidateSide:
    """The kernel in its runner. The slower clock counts: ours less an empty round trip, or its own."""

    calls_max = _CALLS_MAX

    def __init__(self, candidate: Candidate, timed: range) -> None:
        self._candidate = candidate
        self._timed = timed
        self._empty_s = median([candidate.block(0, 0)[0] for _ in range(_EMPTY_BLOCKS)])

    def warm(self, place: int) -> None:
        self._candidate.run(self._timed[place % len(self._timed)])

    def block(self, start: int, calls: int) -> float:
        wall_s, own_s = self._candidate.block(start, calls)
        return max(wall_s - self._empty_s, own_s, 1e-9)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a paired measurement ends: at ``half_width`` of the log-ratio, or after ``time_s`` seconds."""

    half_width: float
    time_s: float
    quads_min: int = QUADS_MIN
    quads_max: int = 400


@dataclass
class Pair:
    """A running comparison of ``stock`` (A) and ``kernel`` (B). Times in seconds per launch.

    ``before_quad`` is told the first place and the number of launches of the kernel's next block.
    """

    stock: Side
    kernel: Side
    places: int
    before_quad: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self.log_ratios: list[float] = []
        self.stock_s: list[float] = []
        self.kernel_s: list[float] = []
        self._turn = 0
        self._calls = [_calibrate(side, self.places) for side in (self.stock, self.kernel)]

    def quad(self) -> None:
        """One A B B A; appends log(A/B)."""
        if self.before_quad is not None:
            # The kernel's first block comes after stock's warm launch and block, and its own warm launch.
            self.before_quad(self._turn + self._calls[0] + 2, self._calls[1])
        a1 = self._block(0)
        b1 = self._block(1)
        b2 = self._block(1)
        a2 = self._block(0)
        self.stock_s += (a1, a2)
        self.kernel_s += (b1, b2)
        self.log_ratios.append(math.log((a1 + a2) / (b1 + b2)))

    def measure(self, rule: Rule, give_up: Callable[[Interval], bool] | None = None) -> Interval:
        """Quads until the rule is met or ``give_up`` says that the outcome is clear."""
        begin = time.perf_counter()
        count = 0
        while True:
            self.quad()
            count += 1
            late = time.perf_counter() - begin > rule.time_s
            if count < rule.quads_min and not (late and count >= 3):
                continue
            if late or count >= rule.quads_max:
                return self.interval()
            if count % _LOOK_EVERY == 0:
                interval = self.interval()
                if interval.half_width < rule.half_width or (give_up and give_up(interval)):
                    return interval

    def interval(self) -> Interval:
        return bootstrap(self.log_ratios, seed=len(self.log_ratios))

    @property
    def stock_us(self) -> float:
        return median(self.stock_s) * 1e6

    @property
    def kernel_us(self) -> float:
        return median(self.kernel_s) * 1e6

    def _block(self, which: int) -> float:
        side, calls = (self.stock, self.kernel)[which], self._calls[which]
        time.sleep(_SETTLE_S)
        side.warm(self._turn % self.places)
        self._turn += 1
        seconds = side.block(self._turn % self.places, calls) / calls
        self._turn += calls
        return seconds


def time_alone(side: Side, places: int, blocks: int = 5) -> float:
    """Median seconds per launch without a partner (for ranking stock implementations roughly)."""
    calls = _calibrate(side, places)
    times = []
    for _ in range(blocks):
        side.warm(0)
        times.append(side.block(1, calls) / calls)
    return median(times)


def fastest(side: Side, places: int, blocks: int = 8) -> float:
    """Shortest block's seconds per launch: a limit, not an average."""
    calls = _calibrate(side, places)
    times = []
    for _ in range(blocks):
        side.warm(0)
        times.append(side.block(1, calls) / calls)
    return min(times)


def _calibrate(side: Side, places: int) -> int:
    """Launches per block, so that a block takes about ``_BLOCK_S`` and visits all places equally often."""
    side.warm(0)
    each = min(side.block(place, 1) for place in range(_CALIBRATION_CALLS))
    if each < _BLOCK_S / 8:
        each = min(each, side.block(0, 8) / 8)
    calls = max(1, min(side.calls_max, round(_BLOCK_S / max(each, 1e-7))))
    whole = max(1, calls // places) * places
    return whole if calls * 2 > places and whole <= side.calls_max else calls
