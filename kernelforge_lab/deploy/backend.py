"""``torch.compile(model, backend="kernelforge")``: this process's winners in any model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from ..capture.trace import GraphBackend
from .install import Installer
from .winner import registry


def kernelforge(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, target: str = "cpu", strict: bool = False
) -> Callable[..., Any]:
    """The backend itself (``torch_dynamo_backends`` entry point).

    Regions without a registered winner, graphs that record gradients and dynamic shapes run PyTorch's
    own calls. Options: ``torch.compile(..., backend="kernelforge", options={"strict": True})``.
    """
    installer = Installer(registry.for_target(target), target, strict=strict)
    return GraphBackend(installer.build, target)(module, example_inputs)


def register() -> None:
    """Make the name known to Dynamo in a process where the package is imported but not installed."""
    from torch._dynamo.backends.registry import _BACKENDS, register_backend

    if "kernelforge" not in _BACKENDS:
        register_backend(kernelforge, name="kernelforge")
