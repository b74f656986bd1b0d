"""A region whose winner is PyTorch's own compiler: inductor, compiled on the first live inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from ..capture.specs import disagreement
from ..judge.stock import Compiled
from ..kernels.execution import compile_region, torch_dtype
from ..kernels.region import Region
from .counts import Counts
from .shadow import shadow_fraction


class CompiledRegion:
    """``call`` is the region by inductor, or eager (counted, with the reason) when it cannot be."""

    def __init__(self, region: Region, counts: Counts) -> None:
        self.region = region
        self._counts = counts
        self._stock = compile_region(region)
        self._lock = threading.Lock()
        self._function: Callable[..., Any] | None = None
        self._reason = ""
        self._tried = False

    def call(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not self._tried:
            with self._lock:
                if not self._tried:
                    self._compile(inputs)
                    self._tried = True
        if self._function is None:
            self._counts.miss(self._reason)
            return self._stock(*inputs)
        self._counts.hit()
        return tuple(self._function(*inputs))

    def _compile(self, inputs: tuple[torch.Tensor, ...]) -> None:
        made = _compile_elsewhere(self.region, inputs[0].device if inputs else torch.device("cpu"))
        if made.function is None:
            self._reason = made.reason
            return
        outs = tuple(made.function(*inputs))
        for out, spec in zip(outs, self.region.outputs, strict=True):
            if disagreement(out, spec) is not None:
                self._reason = f"torch.compile returned another layout: {disagreement(out, spec)}"
                return
        if shadow_fraction(self.region, inputs, self._stock(*inputs), outs) > 1:
            self._reason = "torch.compile disagrees with eager"
            return
        self._function = made.function


def _compile_elsewhere(region: Region, device: torch.device) -> Compiled:
    """In a thread of its own: below a running AOT graph some dispatch keys are off, and tracing fails."""
    made: list[Compiled] = []

    def work() -> None:
        examples = [
            torch.ones(spec.extent, dtype=torch_dtype(spec.dtype), device=device).as_strided(
                spec.shape, spec.strides
            )
            for spec in region.inputs
        ]
        made.append(Compiled(region, examples))

    thread = threading.Thread(target=work, name="kernelforge-inductor")
    thread.start()
    thread.join()
    return made[0]
