"""What earlier runs proved, as the search sees it (the library of proven kernels is behind it)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..kernels.region import Region

LIBRARY: Final = "library"


@dataclass(frozen=True)
class Known:
    """A kernel that was proven earlier. ``is_of_here``: on this very device, so that one proof is enough."""

    kernel: Kernel
    is_of_here: bool
    origin: str


class Memory(Protocol):
    """Never raises: a library that cannot be read knows nothing."""

    def known(self, region: Region) -> Sequence[Known]:
        """Kernels worth proving again, this device's first, then the fastest."""

    def remember(self, region: Region, kernel: Kernel, verdict: Verdict) -> None:
        """A winner was re-measured faster in a fresh process."""

    def forget(self, region: Region, kernel: Kernel) -> None:
        """A remembered kernel was not even correct any more."""
