"""Which strategies work: a Beta bandit per bottleneck class, shared by all regions of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Move: TypeAlias = tuple[str, str]  # (proposer, strategy)

# What a proposer lists first is believed to work with this probability, each later one a little less;
# the belief weighs as much as two observed tries, so that evidence soon outvotes it.
_FIRST: Final = 0.6
_FADE: Final = 0.9
_WEIGHT: Final = 2.0


@dataclass
class Bandit:
    """Wins and losses of moves by bottleneck class; a win may be fractional."""

    wins: dict[tuple[str, Move], float] = field(default_factory=dict)
    losses: dict[tuple[str, Move], float] = field(default_factory=dict)

    def learn(self, bottleneck: str, move: Move, win: float) -> None:
        """``win`` in [0, 1]: 1 a new best of its region, 0 a failure or a duplicate."""
        if not 0 <= win <= 1:
            raise ValueError(f"win must be in [0, 1], not {win}")
        key = (bottleneck, move)
        self.wins[key] = self.wins.get(key, 0.0) + win
        self.losses[key] = self.losses.get(key, 0.0) + 1 - win

    def mean(self, bottleneck: str, move: Move, rank: int = 0) -> float:
        """Posterior probability that the move wins; ``rank`` is its place in the proposer's own list."""
        prior = _FIRST * _FADE**rank
        key = (bottleneck, move)
        wins, losses = self.wins.get(key, 0.0), self.losses.get(key, 0.0)
        return (_WEIGHT * prior + wins) / (_WEIGHT + wins + losses)

    def priors(self, bottleneck: str, moves: Sequence[Move]) -> list[float]:
        """Means of the moves, scaled to sum to 1 (PUCT's prior)."""
        means = [self.mean(bottleneck, move) for move in moves]
        total = sum(means)
        return [mean / total for mean in means] if total else means
