"""Proposers by name, loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..exc import ProblemError
from .base import Proposer

NAMES: Final = ("templates", "llm", "human")


def make(names: Iterable[str], target: str = "cpu") -> list[Proposer]:
    """Proposers in the given order. Raises ProblemError for a name that nobody has."""
    return [_make(name, target) for name in dict.fromkeys(names)]


def _make(name: str, target: str) -> Proposer:
    if name == "templates":
        from .templates.proposer import TemplatesProposer

        return TemplatesProposer()
    if name == "llm":
        return _llm(target)
    if name == "human":
        from .human import HumanProposer

        return HumanProposer()
    raise ProblemError(f"proposers: there is no proposer {name!r}.", f"There are: {', '.join(NAMES)}.")


def _llm(target: str) -> Proposer:
    from .llm.prompt import machine_of
    from .llm.proposer import LlmProposer
    from .llm.settings import HINT, from_environment

    settings = from_environment()
    if settings is None:
        raise ProblemError("proposers: no language model is set up.", HINT)
    return LlmProposer(settings, machine_of(target))
