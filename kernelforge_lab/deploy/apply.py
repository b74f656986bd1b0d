"""Winners → a model with them in place, if it is proven faster as a whole and equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..capture.intact import Inputs, find, modules_of, untouched
from ..capture.session import inference
from ..capture.trace import GraphBackend, through
from ..events import GuardCounts, StepMeasured
from ..exc import ForgeError
from .counts import Counts
from .install import Installer
from .measure import measure_step
from .winner import Winner, registry

_SHADOW_CALLS = 2


class Forged:
    """The person's model with kernels in place, or exactly their model when ``installed`` is False.

    Call it like the original; other attributes are the original's. ``measured`` is the end-to-end A/B,
    ``counts()`` what the guards saw since. Calls that record gradients go to the original, counted.
    """

    def __init__(
        self,
        original: Callable[..., Any],
        compiled: Callable[..., Any] | None,
        measured: StepMeasured | None,
        counts: Counts,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.original = original
        self.measured = measured
        self.notes = notes
        self._compiled = compiled
        self._counts = counts
        self._parameters = [p for module in modules_of(original) for p in module.parameters()]

    @property
    def installed(self) -> bool:
        return self._compiled is not None

    @property
    def model(self) -> Callable[..., Any]:
        """What to call: this object when installed, else the original."""
        return self if self.installed else self.original

    def counts(self) -> GuardCounts:
        return self._counts.as_event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled is None:
            return self.original(*args, **kwargs)
        if torch.is_grad_enabled():
            if self._records(args, kwargs):
                self._counts.miss("gradients are recorded (call under torch.no_grad())")
                return self.original(*args, **kwargs)
            with torch.no_grad():  # nothing asks for a gradient: the graph measured is the graph run
                return self._compiled(*args, **kwargs)
        return self._compiled(*args, **kwargs)

    def _records(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        if any(p.requires_grad for p in self._parameters):
            return True
        return any(t.requires_grad for t in find(torch.Tensor, (args, kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle ask for these before __init__ ran
            raise AttributeError(name)
        return getattr(self.__dict__["original"], name)

    def __repr__(self) -> str:
        state = "forged" if self.installed else "unchanged"
        return f"<{state} {type(self.original).__name__}: {self.measured.message if self.measured else ''}>"


def apply(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    winners: Mapping[str, Winner] | None = None,
    *,
    target: str = "cpu",
    strict: bool = False,
    limit_s: float = 20.0,
    level: str = "region",
) -> Forged:
    """Put ``winners`` (by region hash) into ``function`` and measure the whole call, A/B, for ``limit_s``.

    The person's module is never changed: what comes back wraps it. When the forged call is not surely
    faster, or its outputs are not equal within the bound, ``Forged.model`` is the original. What is
    installed also serves ``torch.compile(..., backend="kernelforge")`` in this process.
    Raises GuardError or CompileError only when ``strict``.
    """
    chosen = dict(winners or {})
    counts = Counts()
    if not chosen:
        return Forged(function, None, None, counts, ("no region has a winner: the model is unchanged",))
    installer = Installer(chosen, target, _SHADOW_CALLS, strict, counts)
    backend = GraphBackend(installer.build, target, level, strict)
    compiled = through(function, backend)
    with untouched(function), inference(function):
        try:
            reason = _warm_up(compiled, args, kwargs or {}, installer)
        except Exception as error:  # noqa: BLE001 - the person keeps a model that runs
            if strict:
                raise _cause(error) from None
            reason = f"the forged model raised {type(error).__name__}: {error}"
        notes = [*backend.notes, *installer.notes]
        if reason:
            return Forged(function, None, None, counts, (*notes, f"{reason}: the model is unchanged"))
        measured = measure_step(function, compiled, args, kwargs or {}, limit_s=limit_s)
    if measured.installed:
        registry.install(chosen.values(), target)
    return Forged(function, compiled if measured.installed else None, measured, counts, tuple(notes))


def _warm_up(
    compiled: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], installer: Installer
) -> str:
    """Compile and run the shadow calls; why it makes no sense to go on, or ""."""
    inputs = Inputs(args, kwargs)
    for _ in range(_SHADOW_CALLS + 1):
        own_args, own_kwargs = inputs.take()
        compiled(*own_args, **own_kwargs)
        inputs.note_mutation()
    return "" if installer.installed else "none of the winners' regions occurs in the model"


def _cause(error: Exception) -> Exception:
    """Our own error inside Dynamo's BackendCompilerFailed."""
    inner = getattr(error, "inner_exception", None)
    return inner if isinstance(inner, ForgeError) else error
