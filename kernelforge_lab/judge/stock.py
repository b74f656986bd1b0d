"""What PyTorch offers for a region besides eager: the region compiled by inductor, shown to have compiled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..kernels.execution import compile_region
from ..kernels.region import Region

if TYPE_CHECKING:
    from torch import Tensor

Implementation = Callable[..., "Sequence[Tensor]"]


class Compiled:
    """A region compiled by inductor. ``function`` is None when it is no baseline; ``reason`` says why.

    ``problem`` non-empty: compiling it ahead failed or took too long, so it is not tried again here.
    """

    def __init__(
        self,
        region: Region,
        inputs: Sequence[Tensor],
        problem: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.function: Implementation | None = None
        self.kernels = 0
        self.reason = problem
        begin = time.perf_counter()
        if not problem:
            self._compile(region, inputs, options or {})
        self.seconds = time.perf_counter() - begin

    def _compile(self, region: Region, inputs: Sequence[Tensor], options: Mapping[str, Any]) -> None:
        try:
            function, kernels = compile_with_inductor(region, inputs, options)
        except Exception as error:  # noqa: BLE001 - inductor raises anything; stock is then eager
            self.reason = failure(error)
            return
        self.kernels = kernels
        if kernels:
            self.function = function
        else:
            self.reason = "torch.compile generated no kernel for this region"


def compile_with_inductor(
    region: Region, inputs: Sequence[Tensor], options: Mapping[str, Any] | None = None
) -> tuple[Implementation, int]:
    """(function, number of kernels inductor generated, also when they came from its cache).

    ``options`` are inductor's. Called below Dynamo: its guards cost 12 µs a call (measured) that a whole
    compiled model does not pay per region, and stock must not look slower than it is. Raises whatever
    inductor raises.
    """
    import torch
    from torch._inductor import metrics
    from torch.fx.experimental.proxy_tensor import make_fx

    metrics.reset()
    with torch.no_grad():
        graph = make_fx(compile_region(region))(*inputs)
        function = torch._inductor.compile(graph, list(inputs), options=dict(options or {}))
        function(*inputs)
    return function, metrics.generated_kernel_count


def failure(error: Exception) -> str:
    """One line for people about why compiling failed."""
    first = (str(error).strip().splitlines() or [""])[0][:200]
    return f"torch.compile failed: {type(error).__name__}: {first}"
