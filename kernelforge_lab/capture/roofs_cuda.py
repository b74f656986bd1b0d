"""What a GPU can do at most, measured by torch's own kernels on the device's clock."""

from __future__ import annotations

from typing import Final

import torch

from .cuda_clock import CudaClock
from .roofline import falling
from .workload import Roofs

# From what fits an L2 to far beyond it; a triad moves three arrays of a third of these.
_SET_BYTES: Final = tuple(1 << n for n in (20, 22, 24, 25, 26, 27, 28, 30))
_MATMUL: Final = 4096
# Enough for a block of half a millisecond at the largest set, and the driver's queue holds a thousand.
_CALLS_MAX: Final = 64
_BLOCK_BYTES: Final = 1 << 31


def measure() -> Roofs:
    """Roofs of the current GPU. Takes half a second and 1 GiB."""
    clock = CudaClock()
    with torch.no_grad():
        curve: list[tuple[int, float]] = []
        for size in _SET_BYTES:
            a, b, c = (torch.rand(size // 12, device="cuda") for _ in range(3))

            def triad(a: torch.Tensor = a, b: torch.Tensor = b, c: torch.Tensor = c) -> None:
                torch.add(b, c, alpha=2.0, out=a)

            calls = max(1, min(_CALLS_MAX, _BLOCK_BYTES // size))
            curve.append((size, size / clock.each(triad, calls) / 1e9))
        tiny = torch.ones(1, device="cuda")
        call_us = clock.each(lambda: torch.neg(tiny), _CALLS_MAX) * 1e6
        single, half = (_matmul_gflops(clock, dtype) for dtype in (torch.float32, torch.bfloat16))
    curve = falling(curve)
    return Roofs(curve[-1][1], single, call_us, tuple(curve), half)


def _matmul_gflops(clock: CudaClock, dtype: torch.dtype) -> float:
    x, y = (torch.randn(_MATMUL, _MATMUL, device="cuda").to(dtype) for _ in range(2))
    out = torch.empty_like(x)
    return 2 * _MATMUL**3 / clock.each(lambda: torch.mm(x, y, out=out), 2) / 1e9
