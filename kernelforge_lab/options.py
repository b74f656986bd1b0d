"""What a person may ask of a run, checked where it enters."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from .exc import ProblemError
from .kernels.region import Region

TARGETS: Final = ("cpu", "cuda")
# Stands for the target of the device that the inputs are on.
AUTO: Final = "auto"
LEVELS: Final = ("region", "op")

# What a person can lose by setting up an LLM and forgetting about it, per run.
_LLM_USD: Final = 1.0


@dataclass(frozen=True)
class Options:
    """Options of ``forge()`` and ``%%forge``; raises ProblemError naming the argument and what it allows.

    target      what kernels are compiled for: ``cpu``, ``cuda``, or ``auto`` (where the inputs are)
    level       ``region`` (fusible subgraphs) or ``op`` (each ATen op alone)
    trials      kernels judged at most
    minutes     wall-clock cap of search and final measurement together
    budget_usd  dollars that paid proposers may spend; 0 pays nothing; default 1 with an LLM, else 0
    proposers   who writes kernels, by name; default the templates, then an LLM that was set up for us
    seed        makes every choice reproducible
    regions     only these: hashes, prefixes of hashes, or parts of op names; () is all
    wait        block until the run has ended; None decides by where we run (notebook: no, script: yes)
    strict      installed kernels raise instead of falling back
    measure     end with the A/B of the whole model
    library     use (and prove again) kernels that earlier runs proved, before writing any
    executor    judges work there: any ``concurrent.futures`` executor, or a ``dask.distributed`` client
    title       the name people see; default the model's class
    """

    target: str = AUTO
    level: str = "region"
    trials: int = 60
    minutes: float = 5.0
    budget_usd: float = None  # type: ignore[assignment] # a float from __post_init__ on
    proposers: tuple[str, ...] = field(default_factory=lambda: usual_proposers(os.environ))
    seed: int = 0
    regions: tuple[str, ...] = ()
    wait: bool | None = None
    strict: bool = False
    measure: bool = True
    library: bool = True
    executor: Any = field(default=None, compare=False, repr=False)
    title: str = ""

    def __post_init__(self) -> None:
        _one_of("target", self.target, (AUTO, *TARGETS))
        _one_of("level", self.level, LEVELS)
        _whole("trials", self.trials, least=0)
        _whole("seed", self.seed, least=0)
        _amount("minutes", self.minutes, above=True)
        for name in ("proposers", "regions"):
            object.__setattr__(self, name, _words(name, getattr(self, name)))
        if not self.proposers:
            raise ProblemError("proposers is empty.", "Name at least one, for example proposers='templates'.")
        given: float | None = self.budget_usd
        if given is None:
            object.__setattr__(self, "budget_usd", _LLM_USD if "llm" in self.proposers else 0.0)
        _amount("budget_usd", self.budget_usd, above=False)

    @classmethod
    def names(cls) -> frozenset[str]:
        return frozenset(f.name for f in fields(cls))

    @property
    def budget_json(self) -> dict[str, float]:
        return {"minutes": self.minutes, "trials": self.trials, "usd": self.budget_usd}


def usual_proposers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The templates, then the LLM if model and key were set for us (a key for other programs is none)."""
    wished = environment.get("KERNELFORGE_LLM_MODEL") and environment.get("KERNELFORGE_LLM_KEY")
    return ("templates", "llm") if wished else ("templates",)


def matching(patterns: Iterable[str], regions: Iterable[Region]) -> frozenset[str]:
    """Hashes of the regions that a filter names; a pattern that names none raises ProblemError."""
    known = list(regions)
    found: set[str] = set()
    for pattern in patterns:
        hits = {r.hash for r in known if r.hash.startswith(pattern.lower())}
        hits |= {r.hash for r in known if any(pattern in op.target for op in r.ops)}
        if not hits:
            listed = ", ".join(f"{r.hash} ({r.title})" for r in known[:8]) or "none"
            raise ProblemError(f"regions: no region matches {pattern!r}.", f"There are: {listed}.")
        found |= hits
    return frozenset(found)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ProblemError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")


def _whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProblemError(f"{name} must be a whole number of at least {least}, not {value!r}.")


def _amount(name: str, value: Any, above: bool) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0 or (above and value == 0):
        raise ProblemError(f"{name} must be a number {'above' if above else 'of at least'} 0, not {value!r}.")


def _words(name: str, value: Any) -> tuple[str, ...]:
    """A comma-separated string or an iterable of strings."""
    parts = (
        value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    )
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise ProblemError(f"{name} must be a string or a list of strings, not {value!r}.")
    return tuple(part.strip() for part in parts if part.strip())
