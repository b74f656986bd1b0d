"""How far from the oracle a kernel may be: relative to eager's own error, scaled by the oracle's rms.

With e = |out − oracle| / max(rms(oracle), |oracle|), a kernel passes when, both in relative L2 and at its
worst element, e ≤ max(2·e_eager, c·eps(dtype), g·e_inherent). ``e_inherent`` is what the function itself
does to inputs changed by half a float32 unit in the last place: a backward-stable algorithm cannot be asked
for more (eager may happen to be exact there, by summing a constant row without rounding for example).
``g`` grows with the length n of the longest sum, for a plain loop errs √n times as much: max(4, √n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..kernels.region import Arg, Op, Region
from ..kernels.spec import EPS

if TYPE_CHECKING:
    import torch

EAGER_FACTOR: Final = 2.0
INHERENT_FACTOR_MIN: Final = 4.0
# c of the formula, (relative L2, worst element). 16-bit results are rounded once from float32: half a unit
# at the worst. float32 leaves room for another order of summation and a 2-ulp exp.
_UNITS: Final = {
    "float64": (8.0, 32.0),
    "float32": (4.0, 16.0),
    "float16": (0.75, 1.5),
    "bfloat16": (0.75, 1.5),
}
# A plain loop over positive numbers errs like the square root of its length; up to this long it is within c.
# Measured with flaws.py of the tests: one running float32 sum passes up to some 4 000 elements, sixteen side
# by side pass always; half-precision sums, TF32 inputs and an exp that is off by 1e-4 never do.
_SUM_FREE: Final = 384
_SUM_LONGEST: Final = 65536
# Equal addends round alike at every step: up to half a unit each, a quarter on average.
_COHERENT_STEP: Final = 4
# A family where eager is this far off in relative L2 proves nothing about a kernel.
EAGER_USELESS: Final = 0.05
_CHUNK: Final = 1 << 19


@dataclass(frozen=True, slots=True)
class Error:
    """Of one output against the oracle: ``l2`` relative, ``worst`` scaled, ``at`` its flat index.

    ``mask_at`` is the flat index of the first element whose NaN/inf kind is wrong (-1: none).
    """

    l2: float
    worst: float
    at: int
    mask_at: int = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """What an output may have; ``scale`` is the rms that errors are measured in."""

    l2: float
    worst: float
    scale: float

    def fraction(self, error: Error) -> float:
        """Error over bound, the larger of the two (≤ 1 passes); infinite when a mask is wrong."""
        if error.mask_at >= 0:
            return math.inf
        parts = [_over(error.l2, self.l2), _over(error.worst, self.worst)]
        return max(parts)


def rms(values: torch.Tensor) -> float:
    """Root mean square over the finite elements (0 when there are none)."""
    total, count = 0.0, 0
    for part in _chunks(values):
        finite = part[part.isfinite()] if not bool(part.isfinite().all()) else part
        total += float((finite.double() ** 2).sum())
        count += finite.numel()
    return math.sqrt(total / count) if count and math.isfinite(total) else (math.inf if count else 0.0)


def measure(
    out: torch.Tensor, oracle: torch.Tensor, scale: float, eager: torch.Tensor | None = None
) -> Error:
    """Error of ``out`` (any floating dtype) against ``oracle`` (float64), in chunks of bounded memory.

    Where the oracle is not finite, ``out`` must be the same kind of not finite. Where only eager is not
    finite (an overflow of its dtype), either answer counts. ``eager`` is needed only in such cases.
    """
    import torch

    squares, norm, worst, at, mask_at, base = 0.0, 0.0, 0.0, -1, -1, 0
    scale = scale if scale > 0 else 1.0
    flat_eager = None if eager is None else eager.reshape(-1)
    for got_raw, want in zip(_chunks(out), _chunks(oracle), strict=True):
        got = got_raw.double()
        error = (got - want).abs_()
        size = want.abs()
        if not math.isfinite(float(error.sum())) or flat_eager is not None:
            same = (got == want) | (got.isnan() & want.isnan())
            if flat_eager is not None:
                stock = flat_eager[base : base + got.numel()].double()
                like_stock = (got == stock) | (got.isnan() & stock.isnan())
                # Only an element eager could not represent may follow eager instead of the oracle.
                same |= like_stock & (stock.isfinite() != want.isfinite())
                # Overflow that eager's intermediates avoided or met is decided by the dtype's own range.
                narrowed = want.to(out.dtype).double()
                same |= (got == narrowed) & ~narrowed.isfinite()
            regular = got.isfinite() & want.isfinite()
            bad = ~same & ~regular
            if mask_at < 0 and bool(bad.any()):
                mask_at = base + int(bad.nonzero()[0])
            use = regular & ~same
            error = torch.where(use, error, 0.0)
            size = torch.where(want.isfinite(), size, 0.0)
        squares += float((error * error).sum())
        norm += float((size * size).sum())
        relative = error / size.clamp_(min=scale)
        top = float(relative.max()) if relative.numel() else 0.0
        if top > worst or at < 0:
            worst, at = top, base + (int(relative.argmax()) if relative.numel() else 0)
        base += got.numel()
    length = max(math.sqrt(norm), scale * math.sqrt(max(base, 1)))
    l2 = math.sqrt(squares) / length if length and math.isfinite(length) else 0.0
    return Error(l2, worst, max(at, 0), mask_at)


def bound(
    dtype: str,
    eager: Error,
    inherent: Sequence[Error],
    sum_length: int,
    scale: float,
    *,
    coherent: bool = False,
) -> Bound:
    """The bound of one output from eager's error and the function's own sensitivity.

    ``coherent``: the inputs make every step of a sum of ``sum_length`` round the same way.
    """
    base = [c * EPS[dtype] for c in _UNITS[dtype]]
    inherent_factor = max(INHERENT_FACTOR_MIN, math.sqrt(sum_length))
    if coherent:
        inherent_factor = max(inherent_factor, sum_length / _COHERENT_STEP)
    if dtype in ("float32", "float64"):
        growth = max(1.0, math.sqrt(min(sum_length, _SUM_LONGEST) / _SUM_FREE))
        extra = sum_length / _COHERENT_STEP * EPS[dtype] if coherent else 0.0
        base = [value * growth + extra for value in base]
    return Bound(
        l2=max(
            EAGER_FACTOR * eager.l2, base[0], inherent_factor * max((e.l2 for e in inherent), default=0.0)
        ),
        worst=max(
            EAGER_FACTOR * eager.worst,
            base[1],
            inherent_factor * max((e.worst for e in inherent), default=0.0),
        ),
        scale=scale,
    )


def longest_sum(region: Region) -> int:
    """How many elements the region's longest reduction adds up (1 when it has none)."""
    return max((_sum_length(region, op) for op in region.ops), default=1)


def _sum_length(region: Region, op: Op) -> int:
    if not any(word in op.short_name for word in _SUMS):
        return 1
    given = [region.specs[name] for name in op.refs() if name in region.specs]
    outs = [spec.numel for spec in op.outs if spec is not None and spec.numel]
    if not given or not outs:
        return 1
    largest = max(spec.numel for spec in given)
    if "group_norm" in op.short_name:
        batch, groups = op.args[3], op.args[6]
        return largest // max(1, _integer(batch) * _integer(groups))
    for arg in op.args[1:2]:
        if "layer_norm" in op.short_name or "rms_norm" in op.short_name:
            return math.prod(_integer(n) for n in arg) if isinstance(arg, tuple) else 1
        if ("softmax" in op.short_name or "cum" in op.short_name) and isinstance(arg, int) and given[0].shape:
            return given[0].shape[arg]
    if op.short_name in _PRODUCTS:
        return given[0].shape[-1] if given[0].shape else 1
    return max(1, largest // min(outs))


def _integer(arg: Arg) -> int:
    return arg if isinstance(arg, int) else 1


_PRODUCTS: Final = frozenset("mm bmm addmm linear matmul".split())
_SUMS: Final = tuple("sum mean var std norm softmax cum prod mm linear matmul conv dot".split())


def _over(value: float, limit: float) -> float:
    if value <= limit:
        return value / limit if limit > 0 else 0.0
    return value / limit if limit > 0 else math.inf


def _chunks(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    import torch

    return torch.split(values.reshape(-1), _CHUNK) if values.numel() else ()
