"""``torch.compile(model, backend="kernelforge")``: this process's winners in any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx

from ..capture.trace import GraphBackend
from ..exc import ProblemError
from .install import Installer
from .winner import registry


def kernelforge(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The backend itself (``torch_dynamo_backends`` entry point).

    Regions without a registered winner, graphs that record gradients and dynamic shapes run PyTorch's
    own calls. ``torch.compile(model, backend="kernelforge", options={"strict": True, "target": "cpu"})``.
    Raises ProblemError for an option (or any mode) it does not have.
    """
    given = dict(options or {})
    target, strict = given.pop("target", "cpu"), bool(given.pop("strict", False))
    if given or mode is not None:
        name = next(iter(given), "mode")
        raise ProblemError(f"backend kernelforge has no option {name!r}.", "It has target and strict.")
    installer = Installer(registry.for_target(target), target, strict=strict)
    return GraphBackend(installer.build, target, strict=strict)(module, example_inputs)


def register() -> None:
    """Make the name known to Dynamo in a process where the package is imported but not installed."""
    from torch._dynamo.backends.registry import _BACKENDS, register_backend

    if "kernelforge" not in _BACKENDS:
        register_backend(kernelforge, name="kernelforge")
