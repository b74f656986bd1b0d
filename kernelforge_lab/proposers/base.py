"""The protocol of everything that writes kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..kernels.region import Region


@dataclass(frozen=True)
class Ask:
    """One request: what to write a kernel for, from which parent, trying what.

    ``parent`` None asks for a kernel from nothing (a root child). ``siblings`` are the kernels already
    tried under the parent with their verdicts. ``seed`` makes any random choice reproducible.
    ``threads`` is how many CPU threads the target may use (cpu) and is 0 elsewhere.
    """

    region: Region
    target: str
    strategy: str
    parent: Kernel | None = None
    parent_verdict: Verdict | None = None
    siblings: tuple[tuple[Kernel, Verdict | None], ...] = ()
    seed: int = 0
    hint: str = ""
    threads: int = 0


class Proposer(Protocol):
    """Writes kernels. Never runs them, never raises for a region it cannot handle."""

    @property
    def name(self) -> str: ...

    def refuses(self, region: Region, target: str) -> str | None:
        """Why this proposer cannot write a kernel for the region, or None when it can."""

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        """Names of what could be tried, most promising first; () when nothing (more) is to be tried."""

    def propose(self, ask: Ask) -> Kernel | None:
        """A kernel with its ``// forge:`` lines (tune lines included), or None when it has no answer."""
