"""A kernel's answer against eager's on live data, both measured from the float64 oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import torch

from ..judge.tolerance import Error, bound, longest_sum, measure, rms
from ..kernels.execution import compile_region
from ..kernels.region import Region

# The judge has already proven the kernel on many inputs; live data may be harder than all of them, and
# the judge's allowance for the function's own sensitivity is not computed here.
_SLACK: Final = 4.0


def shadow_fraction(
    region: Region,
    inputs: Sequence[torch.Tensor],
    stock: Sequence[torch.Tensor],
    outs: Sequence[torch.Tensor],
) -> float:
    """Worst error over its bound, over all outputs: at most 1 when the kernel agrees."""
    upcast = [t.double() if t.is_floating_point() else t for t in inputs]
    oracle = compile_region(region, float64=True)(*upcast)
    worst = 0.0
    for exact, eager, out, spec in zip(oracle, stock, outs, region.outputs, strict=True):
        if not spec.is_floating:
            worst = max(worst, 0.0 if torch.equal(eager, out) else math.inf)
            continue
        worst = max(worst, output_fraction(exact, eager, out, spec.dtype, longest_sum(region)) / _SLACK)
    return worst


def output_fraction(
    exact: torch.Tensor, eager: torch.Tensor, out: torch.Tensor, dtype: str, sum_length: int
) -> float:
    """Error of ``out`` over the bound that eager's own error sets (judging.md); inf for a wrong mask."""
    scale = rms(exact)
    own: Error = measure(eager, exact, scale, eager)
    return bound(dtype, own, (), sum_length, scale).fraction(measure(out, exact, scale, eager))
