"""Which device a call runs on, and what that asks of us: its current index, its random numbers, waiting."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

from ..exc import CaptureError
from .intact import find, modules_of

TARGETS: Final = ("cpu", "cuda")


def target_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The target of a call by the device of its inputs, else of its model's parameters; cpu without any.

    Raises CaptureError for a device that no target runs on.
    """
    places = [t.device for t in find(torch.Tensor, (args, dict(kwargs)))] or _parameters(function)
    kinds = Counter(place.type for place in places)
    if "cuda" in kinds:  # beside it there may be sizes and positions that a model reads on the host
        return "cuda"
    kind = kinds.most_common(1)[0][0] if kinds else "cpu"
    if kind not in TARGETS:
        raise CaptureError(
            f"The call runs on {kind!r}, and kernels can be written for {', '.join(TARGETS)}.",
            "Move the model and its inputs there.",
        )
    return kind


def check(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], target: str
) -> None:
    """Raise CaptureError when the model or all of its inputs are on another device than ``target``."""
    if target == "cuda" and not torch.cuda.is_available():
        raise CaptureError(
            "target cuda needs a PyTorch that sees an NVIDIA GPU, and this one sees none.",
            "kernelforge doctor says what is missing; target='cpu' needs no GPU.",
        )
    inputs = [tensor.device for tensor in find(torch.Tensor, (args, dict(kwargs)))]
    for name, places in (("the model is", _parameters(function)), ("the inputs are", inputs)):
        kinds = dict.fromkeys(place.type for place in places)
        if kinds and target not in kinds:
            raise CaptureError(
                f"The target is {target}, but {name} on {' and '.join(kinds)}.",
                f"Move model and inputs with .to({target!r}), or leave the target out.",
            )


@contextlib.contextmanager
def entered(args: tuple[Any, ...], kwargs: Mapping[str, Any], target: str) -> Iterator[None]:
    """With the GPU of the first input on one as torch's current device; nothing on the cpu."""
    found = (t.device for t in find(torch.Tensor, (args, dict(kwargs))) if t.is_cuda)
    place = next(found, None) if target == "cuda" else None
    with torch.cuda.device(place) if place is not None else contextlib.nullcontext():
        yield


def settle(target: str) -> None:
    """Return when the device has done everything it was asked for: only then a host clock tells the truth."""
    if target == "cuda":
        torch.cuda.synchronize()


def _parameters(function: Callable[..., Any]) -> list[torch.device]:
    owners = modules_of(function)
    return [t.device for module in owners for t in (*module.parameters(), *module.buffers())]
