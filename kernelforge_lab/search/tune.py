"""Choosing the values of a kernel's ``// forge: tune`` lines by successive halving."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# More combinations than this are sampled: each costs a compilation.
MOST_COMBINATIONS: Final = 16

# Each rung keeps the better third; three rungs bring 16 to 1.
_KEEP: Final = 3

Params = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Rung:
    """One round of quick measurements: the combinations still in the race."""

    number: int
    combinations: tuple[Params, ...]


def combinations(tunes: Mapping[str, Sequence[int]], seed: int = 0) -> tuple[Params, ...]:
    """At most 16 combinations, the first value of each line first; () when there is nothing to choose.

    A larger product is sampled without replacement, the same way for the same seed.
    """
    names = sorted(name for name, values in tunes.items() if values)
    total = math.prod(len(tunes[name]) for name in names)
    if total <= 1:
        return ()

    def at(index: int) -> Params:
        chosen = []
        for name in reversed(names):
            index, place = divmod(index, len(tunes[name]))
            chosen.append((name, tunes[name][place]))
        return tuple(sorted(chosen))

    if total <= MOST_COMBINATIONS:
        return tuple(at(i) for i in range(total))
    others = random.Random(f"tune/{seed}/{names}").sample(range(1, total), MOST_COMBINATIONS - 1)
    return tuple(at(i) for i in itertools.chain([0], others))


def halving(candidates: Sequence[Params]) -> Generator[Rung, Sequence[float | None], Params | None]:
    """A coroutine: yields rungs, is sent one figure of merit per combination (higher is better, None
    failed) and returns the winner, or None when nothing worked.

    Ties go to the earlier combination. The caller decides how long a rung's measurements are.
    """
    remaining = tuple(candidates)
    number = 0
    while remaining:
        merits = yield Rung(number, remaining)
        scored = [(-merit, i) for i, merit in enumerate(merits) if merit is not None]
        if not scored:
            return None
        keep = max(1, len(remaining) // _KEEP)
        remaining = tuple(remaining[i] for _, i in sorted(scored)[:keep])
        if keep == 1:
            return remaining[0]
        number += 1
    return None
