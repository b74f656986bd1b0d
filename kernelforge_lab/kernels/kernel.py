"""A kernel: one source file for one region and one target, with its chosen parameters."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Kernel:
    """Source in the ``// forge:`` format plus who made it and with which tune values.

    ``params`` are the chosen values of the source's ``tune`` lines (empty: the first of each).
    ``proposer`` is ``templates``, ``llm``, ``human`` or ``replay``; ``strategy`` the action it tried;
    ``idea`` one line for people.
    """

    source: str
    region: str
    target: str
    params: tuple[tuple[str, int], ...] = ()
    proposer: str = "human"
    strategy: str = ""
    idea: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """First 12 hex digits over source, target and parameters: one judged thing."""
        text = "\0".join([self.target, self.region, self.source, repr(sorted(self.params))])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def tuned(self, **params: int) -> Kernel:
        """The same source with other tune values."""
        return replace(self, params=tuple(sorted({**dict(self.params), **params}.items())))
