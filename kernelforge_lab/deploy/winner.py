"""What won a region, and the process-wide registry that ``backend="kernelforge"`` reads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..kernels.region import Region

COMPILED: Final = "compiled"
EAGER: Final = "eager"


@dataclass(frozen=True)
class Winner:
    """The fastest proven implementation of a region: a kernel, ``"compiled"`` (inductor) or ``"eager"``."""

    region: Region
    kernel: Kernel | str
    verdict: Verdict | None = None

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str) and self.kernel not in (COMPILED, EAGER):
            raise ValueError(f"a winner is a Kernel, {COMPILED!r} or {EAGER!r}, not {self.kernel!r}")


class Registry:
    """Winners by target and region hash. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._winners: dict[tuple[str, str], Winner] = {}

    def install(self, winners: Iterable[Winner], target: str = "cpu") -> None:
        """Add winners; a later one replaces an earlier one of the same region."""
        with self._lock:
            for winner in winners:
                self._winners[target, winner.region.hash] = winner

    def clear(self) -> None:
        with self._lock:
            self._winners.clear()

    def for_target(self, target: str) -> Mapping[str, Winner]:
        """Region hash → winner, as of now."""
        with self._lock:
            return {name: winner for (of, name), winner in self._winners.items() if of == target}


registry: Final = Registry()
