"""Winners → a model with them in place, if it is proven faster as a whole and equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..capture.intact import Inputs, untouched
from ..capture.session import inference
from ..exc import ForgeError, ProblemError
from .forged import Forged, Recipe
from .install import Installer
from .measure import measure_step
from .winner import Winner, registry

__all__ = ["Forged", "apply"]

_SHADOW_CALLS = 2


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
    graphs: bool = False,
) -> Forged:
    """Put ``winners`` (by region hash) into ``function`` and measure the whole call, A/B, for ``limit_s``.

    The person's module is never changed: what comes back wraps it. When the forged call is not surely
    faster, or its outputs are not equal within the bound, ``Forged.model`` is the original. What is
    installed also serves ``torch.compile(..., backend="kernelforge")`` in this process.
    ``graphs`` (cuda) replays the forged step as a CUDA graph, one per shape of the inputs.
    Raises ProblemError for ``graphs`` on a cpu; GuardError or CompileError only when ``strict``.
    """
    if graphs and target != "cuda":
        raise ProblemError(
            f"graphs=True records CUDA graphs, and the target is {target}.",
            "Leave graphs out: on a cpu a call has no launch cost that a graph could save.",
        )
    recipe = Recipe(dict(winners or {}), target, level, strict, _SHADOW_CALLS, graphs)
    if not recipe.winners:
        return Forged(function, None, notes=("no region has a winner: the model is unchanged",))
    built = recipe.build(function)
    with untouched(function), inference(function):
        try:
            reason = _warm_up(built.call, args, kwargs or {}, built.installer)
        except Exception as error:  # noqa: BLE001 - the person keeps a model that runs
            if strict:
                raise _cause(error) from None
            reason = f"the forged model raised {type(error).__name__}: {error}"
        notes = [*built.backend.notes, *built.installer.notes]
        if reason:
            reason = f"{reason}: the model is unchanged"
            return Forged(function, None, counts=built.counts, notes=(*notes, reason))
        measured = measure_step(function, built.call, args, kwargs or {}, limit_s=limit_s)
    notes += built.notes()
    if measured.installed:
        registry.install(recipe.winners.values(), target)
    return Forged(
        function,
        built if measured.installed else None,
        recipe=recipe,
        measured=measured,
        counts=built.counts,
        notes=tuple(notes),
    )


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
