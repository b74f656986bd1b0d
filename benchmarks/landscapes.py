"""Synthetic landscapes of kernels for judging search policies: failures, plateaus, duplicates, noise.

A kernel is a point with a latent log-speed. Templates give starting points of different families; each
family has a ceiling of its own (a plateau no refinement gets past). A move fails, does nothing (the same
kernel again), makes things a little worse, or wins a part of what its family still allows. Which moves
work is hidden, and shared by the regions of one landscape. Measured times carry noise.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Final

from kernelforge_lab.search.bandit import Move

TEMPLATES: Final = tuple(("templates", f"t{i}") for i in range(5))
SCRATCH: Final = (("llm", "from scratch"), ("llm", "from scratch again"))
REFINE: Final = tuple(("llm", f"s{i}") for i in range(8))

STOCK_US: Final = 100.0
HEADROOM: Final = 4.0
NOISE: Final = 0.02
WRONG: Final = -1.0  # latent of a kernel that is wrong
BROKEN: Final = -2.0  # and of one that does not compile


@dataclass(frozen=True)
class Point:
    """A kernel. ``latent`` is ln(stock/time), or WRONG or BROKEN; equal ``identity`` is the same kernel."""

    latent: float
    ceiling: float
    identity: int
    depth: int = 0

    @property
    def works(self) -> bool:
        return self.latent not in (WRONG, BROKEN)


STOCK: Final = Point(0.0, 0.0, 0)


@dataclass
class Landscape:
    """One region. The same (parent, move, attempt) always gives the same kernel."""

    seed: int
    failure: float = 0.3
    duplicate: float = 0.15
    chances: dict[Move, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        luck = random.Random(f"landscape/{self.seed}")
        # A few moves work well, most seldom: the shape that LLM strategy logs show.
        self.chances = {move: luck.betavariate(0.6, 1.6) for move in REFINE}

    def menu(self, point: Point) -> tuple[Move, ...]:
        return TEMPLATES + SCRATCH if point is STOCK else REFINE

    def child(self, parent: Point, move: Move, attempt: int = 0) -> Point:
        luck = random.Random(f"{self.seed}/{parent.identity}/{move}/{attempt}")
        identity = luck.getrandbits(48)
        limit = math.log(HEADROOM)
        if parent is STOCK:
            wrong = 0.05 if move in TEMPLATES else 0.5
            ceiling = limit * luck.uniform(0.35, 1.0)
            if luck.random() < wrong:
                return Point(luck.choice([WRONG, BROKEN]), 0.0, identity)
            return Point(ceiling * luck.uniform(0.1, 0.6), ceiling, identity, 1)
        if luck.random() < self.failure:
            return Point(luck.choice([WRONG, BROKEN]), 0.0, identity)
        if luck.random() < self.duplicate:
            return parent
        left = parent.ceiling - parent.latent
        if luck.random() < self.chances[move]:
            gain = luck.uniform(0.1, 0.5) * left
        else:
            gain = -luck.uniform(0.0, 0.25)
        return Point(min(parent.latent + gain, parent.ceiling), parent.ceiling, identity, parent.depth + 1)

    def measured_us(self, point: Point, trial: int, unit: float = 1.0) -> float:
        """Time with noise, in µs times ``unit``."""
        luck = random.Random(f"noise/{self.seed}/{point.identity}/{trial}")
        return unit * STOCK_US * math.exp(-point.latent + luck.gauss(0.0, NOISE))
