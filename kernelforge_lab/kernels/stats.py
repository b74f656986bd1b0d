"""What a region's real inputs looked like, so that the judge can make more of their kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputStats:
    """Of one input, over its finite elements, in its own units. Integers keep exact min and max.

    ``low``/``high``: smallest and largest finite value; ``zeros``, ``nan``, ``inf``: fractions of elements.
    """

    low: float = -1.0
    high: float = 1.0
    mean: float = 0.0
    std: float = 1.0
    zeros: float = 0.0
    nan: float = 0.0
    inf: float = 0.0
