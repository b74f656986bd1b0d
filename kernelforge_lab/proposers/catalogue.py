"""Proposers by name, loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..exc import ProblemError
from .base import Proposer

NAMES: Final = ("templates", "human")


def make(names: Iterable[str]) -> list[Proposer]:
    """Proposers in the given order. Raises ProblemError for a name that nobody has."""
    return [_make(name) for name in dict.fromkeys(names)]


def _make(name: str) -> Proposer:
    if name == "templates":
        from .templates.proposer import TemplatesProposer

        return TemplatesProposer()
    if name == "human":
        from .human import HumanProposer

        return HumanProposer()
    raise ProblemError(f"proposers: there is no proposer {name!r}.", f"There are: {', '.join(NAMES)}.")
