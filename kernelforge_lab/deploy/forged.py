"""The person's model with kernels in place, and how to make it again for a copy of the model."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from ..capture.intact import find, modules_of
from ..capture.trace import GraphBackend, through
from ..events import GuardCounts, StepMeasured
from ..exc import GuardError
from .counts import Counts
from .install import Installer
from .winner import Winner

_GRADIENTS: Final = "gradients are recorded (call under torch.no_grad())"
_HOOKS: Final = "hooks were added or taken away after forging"
_NO_GRAPH: Final = "PyTorch ran the call itself (more kinds of input than torch.compile keeps)"
_HOOK_TABLES: Final = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """Everything but the model that makes a forged model. Plain data: it is copied and pickled with it."""

    winners: Mapping[str, Winner]
    target: str = "cpu"
    level: str = "region"
    strict: bool = False
    shadow: int = 2
    graphs: bool = False

    def build(self, function: Callable[..., Any], counts: Counts | None = None) -> Built:
        """Nothing is compiled yet: that happens in the first call."""
        counts = counts or Counts()
        installer = Installer(self.winners, self.target, self.shadow, self.strict, counts)
        backend = GraphBackend(installer.build, self.target, self.level, self.strict)
        call = through(function, backend)
        if not self.graphs:
            return Built(call, installer, backend, counts)
        from .graphs import Graphed

        graphed = Graphed(call, counts)
        return Built(graphed, installer, backend, counts, graphed.notes)


@dataclass(frozen=True)
class Built:
    """A forged callable with what it is made of. ``notes()`` is what it has to say after it ran."""

    call: Callable[..., Any]
    installer: Installer
    backend: GraphBackend
    counts: Counts
    notes: Callable[[], list[str]] = list


class Forged:
    """The person's model with kernels in place, or exactly their model when ``installed`` is False.

    Call it like the original; attributes and methods are the original's, and what is set here is set there.
    ``measured`` is the end-to-end A/B, ``counts()`` what the guards saw since. Calls that record gradients
    go to the original, counted, and so do all calls while hooks differ from those at forging; ``strict``
    raises GuardError instead. ``copy.deepcopy`` and ``pickle`` give a forged copy of the model, which
    proves its kernels anew in its first calls. Inside somebody else's ``torch.compile`` it is a graph break.
    """

    _OWN: Final = frozenset("original measured notes _built _recipe _counts _hooks _hooks_seen _call".split())

    def __init__(
        self,
        original: Callable[..., Any],
        built: Built | None,
        *,
        recipe: Recipe | None = None,
        measured: StepMeasured | None = None,
        counts: Counts | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.original = original
        self.measured = measured
        self.notes = notes
        self._built = built
        self._recipe = recipe
        self._counts = counts or Counts()
        self._hooks_seen = RemovableHandle.next_id
        self._hooks = _hooks(original)
        # Traced into somebody's graph, the call would lose its kernels and count nothing.
        self._call = torch.compiler.disable(self._forged_call)

    @property
    def installed(self) -> bool:
        return self._built is not None

    @property
    def model(self) -> Callable[..., Any]:
        """What to call: this object when installed, else the original."""
        return self if self.installed else self.original

    def counts(self) -> GuardCounts:
        return self._counts.as_event()

    def shadow(self, calls: int = 1) -> Forged:
        """Run every kernel's next ``calls`` calls beside PyTorch again, on live data and with its answer.

        A kernel that disagrees is off for good, and its reason is in ``counts()``.
        """
        if self._built is not None:
            self._built.installer.shadow_again(calls)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._built is None:
            return self.original(*args, **kwargs)
        return self._call(*args, **kwargs)

    def _forged_call(self, *args: Any, **kwargs: Any) -> Any:
        built = self._built
        assert built is not None
        reason = self._hooks_changed()
        if torch.is_grad_enabled() and not reason and self._records(args, kwargs):
            reason = _GRADIENTS
        if reason:
            self._miss(reason)
            return self.original(*args, **kwargs)
        ran = built.installer.calls
        if torch.is_grad_enabled():
            with torch.no_grad():  # nothing asks for a gradient: the graph measured is the graph run
                result = built.call(*args, **kwargs)
        else:
            result = built.call(*args, **kwargs)
        if built.installer.calls == ran and not self._is_replayed:
            self._miss(_NO_GRAPH)
        return result

    @property
    def _is_replayed(self) -> bool:
        return self._recipe is not None and self._recipe.graphs

    def _miss(self, reason: str) -> None:
        self._counts.miss(reason)
        if self._recipe is not None and self._recipe.strict:
            raise GuardError(f"The call fell back to PyTorch: {reason}.", "Apply without strict to let it.")

    def _records(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        # Every time anew: parameters are replaced, thawed and frozen while the forged model lives.
        if any(p.requires_grad for p in _parameters(self.original)):
            return True
        return any(t.requires_grad for t in find(torch.Tensor, (args, kwargs)))

    def _hooks_changed(self) -> str:
        """Dynamo does not look at hooks again once it has compiled a module."""
        if self._hooks_seen != RemovableHandle.next_id or self._hooks:
            self._hooks_seen = RemovableHandle.next_id
            if _hooks(self.original) != self._hooks:
                self._hooks_seen = -1  # until they are as they were
                return _HOOKS
        return ""

    # ---- as the original ----

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "original" not in self.__dict__:  # asked for before __init__ ran
            raise AttributeError(name)
        value = getattr(self.original, name)
        if isinstance(value, types.MethodType) and value.__self__ is self.original:
            return self._chained(value)
        return value

    def _chained(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """``forged.eval()`` returns the forged model where ``model.eval()`` returns the model."""

        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return self if result is self.original else result

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self.original, name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Forged:
        return _restore(
            copy.deepcopy(self.original, memo), self.installed, self._recipe, self.measured, self.notes
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.original, self.installed, self._recipe, self.measured, self.notes)

    def __repr__(self) -> str:
        state = "forged" if self.installed else "unchanged"
        return f"<{state} {type(self.original).__name__}: {self.measured.message if self.measured else ''}>"


def _restore(
    original: Callable[..., Any],
    installed: bool,
    recipe: Recipe | None,
    measured: StepMeasured | None,
    notes: tuple[str, ...],
) -> Forged:
    built = recipe.build(original) if installed and recipe is not None else None
    counts = built.counts if built else None
    return Forged(original, built, recipe=recipe, measured=measured, counts=counts, notes=notes)


def _modules(function: Callable[..., Any]) -> Iterator[nn.Module]:
    """All modules of a callable. ``nn.Module.modules()`` takes three times as long."""
    waiting = list(modules_of(function))
    seen: set[int] = set()
    while waiting:
        module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting += [child for child in module._modules.values() if child is not None]


def _parameters(function: Callable[..., Any]) -> Iterator[nn.Parameter]:
    for module in _modules(function):
        yield from (p for p in module._parameters.values() if p is not None)


def _hooks(function: Callable[..., Any]) -> tuple[tuple[int, str, tuple[int, ...]], ...]:
    """Which hooks hang on which module, now."""
    return tuple(
        (id(module), table, tuple(hooks))
        for module in _modules(function)
        for table in _HOOK_TABLES
        if (hooks := module.__dict__.get(table))
    )
