"""How good a verdict is, in [0, 1] and without units.

UCT on raw milliseconds makes the tree depend on the time unit; here only ratios of times enter, so
multiplying every time by a constant changes nothing.
"""

from __future__ import annotations

import math
from typing import Final

from ..judge.verdict import Status, Verdict

# The fraction of the roofline limit that good kernels reach; past it there is nothing to search for.
_REACHABLE: Final = {"memory": 0.90, "latency": 0.90, "compute": 0.75}

# Correct kernels live in [_CORRECT, 1], so that any correct kernel beats any wrong one.
_CORRECT: Final = 0.2
_WRONG: Final = 0.05
_LOWEST: Final = -0.5

# A region closer than this to its limit counts as this far away: the logarithm in the denominator
# would otherwise blow noise up to full reward.
_LEAST_HEADROOM: Final = math.log(1.05)

_WRONG_ANSWERS: Final = frozenset(
    {
        Status.WRONG,
        Status.OUT_OF_BOUNDS,
        Status.UNWRITTEN,
        Status.MUTATED_INPUT,
        Status.NONDETERMINISTIC,
    }
)


def reachable_us(floor_us: float, bottleneck: str) -> float:
    """t*: the time at which a region counts as done, from its roofline floor (both in µs).

    ``bottleneck`` is ``memory``, ``latency`` or ``compute``.
    """
    return floor_us / _REACHABLE[bottleneck]


def reward(verdict: Verdict, headroom: float) -> float | None:
    """Reward of a verdict; None when it must not count at all (quarantined or not measured).

    ``headroom`` is t0/t*, best stock over the reachable time.
    """
    if verdict.status is Status.IMPOSSIBLE:
        return None
    if verdict.status.is_correct and verdict.timing is not None:
        return of_speedup(verdict.timing.speedup, headroom)
    return _WRONG if verdict.status in _WRONG_ANSWERS else 0.0


def of_speedup(speedup: float, headroom: float) -> float:
    """Reward of a correct kernel: share of the logarithmic headroom won, clipped and mapped to [0.2, 1]."""
    scale = max(math.log(headroom) if headroom > 0 else 0.0, _LEAST_HEADROOM)
    won = math.log(speedup) / scale if speedup > 0 else _LOWEST
    won = min(max(won, _LOWEST), 1.0)
    return _CORRECT + (1 - _CORRECT) * (won - _LOWEST) / (1 - _LOWEST)
