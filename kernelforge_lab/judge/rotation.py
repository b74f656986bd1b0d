"""The data that timing runs on: every place holds a proven case, and one changes before each quad.

A kernel that skips, caches or precomputes work while it is timed leaves outputs that are not those proven
for the data that now lies there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from .arena import POISONS, Arena
from .checks import Proof
from .oracle import Case


class Rotation:
    """Fills the places with proven ``cases`` and verifies those that were changed, after their quad."""

    def __init__(self, arena: Arena, proof: Proof, cases: Sequence[Case], seed: int) -> None:
        self._arena = arena
        self._proof = proof
        self._cases = cases
        self._draw = random.Random(seed)
        self._placed: dict[int, Case] = {}
        self._pending: set[int] = set()
        self.fill()

    def fill(self) -> None:
        """(Re)write every place, for example after other checks used some."""
        self.verify()
        for index in self._arena.layout.timed:
            case = self._cases[index % len(self._cases)]
            self._arena.write_inputs(self._arena.layout.places[index], case.storages)
            self._placed[index] = case

    def before_quad(self, first: int, calls: int) -> None:
        """Change one of the places that the kernel's next block (``calls`` from ``first``) will run."""
        self.verify()
        timed = self._arena.layout.timed
        place = timed[(first + self._draw.randrange(calls)) % len(timed)]
        case = self._draw.choice(self._cases)
        slots = self._arena.layout.places[place]
        self._arena.write_inputs(slots, case.storages)
        self._arena.poison(slots, POISONS[self._draw.randrange(2)])
        self._placed[place] = case
        self._pending.add(place)

    def verify(self) -> None:
        """Raises Failed when a changed place does not hold the outputs proven for its data."""
        while self._pending:
            place = self._pending.pop()
            self._proof.verify_place(place, self._placed[place])
