"""Inputs a kernel is tried on: of the recorded kind, and families made to break wrong kernels.

A family changes what was recorded in one way. Only floating *main* inputs (the largest, activations
rather than weights) are changed; the others stay as recorded, integers stay in their recorded range.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..kernels.execution import torch_dtype
from ..kernels.region import Region
from ..kernels.spec import FLOATING, TensorSpec
from ..kernels.stats import InputStats
from .layout import storage_bytes

if TYPE_CHECKING:
    import torch

# Largest magnitude a family makes, by dtype: far enough from overflow that inputs stay finite.
_LARGEST: Final = {"float16": 3e4, "bfloat16": 1e30, "float32": 1e30, "float64": 1e200}
_GAP_FILL: Final = 0xFF
# Rows from this length on are shared by threads or unrolled in large steps; shorter ones are joined.
_SHARED_ROW: Final = 256


@dataclass(frozen=True)
class Family:
    """``change`` gets a float32/64 draft of a main input and its generator and returns the new values.

    ``special`` families hold non-finite values. ``coherent`` ones make a sum round the same way at every
    step, so that its error grows like its length. ``summing`` ones are for regions that add up. ``quick``
    ones belong to the short proof.
    """

    name: str
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor]
    varied: bool = True
    special: bool = False
    coherent: bool = False
    summing: bool = False
    quick: bool = False


def _keep(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return x


def _shifted(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """A mean of ten standard deviations: variances computed as E[x²]−E[x]² lose their digits."""
    return x + 10.0 * _spread(x)


def _mean_1e4(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return x + 1e4


def _large(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return x * 1e4


def _tiny(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return x * 1e-4


def _equal_rows(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Every row constant along the last dimension (variance exactly zero)."""
    return x[..., :1].expand_as(x).clone() if x.dim() else x


def _zeros(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return x * 0.0


def _outlier(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """One element a thousand times larger than the rest."""
    flat = x.reshape(-1).clone()
    if flat.numel():
        flat[_index(flat.numel(), random)] = 1000.0 * _spread(x)
    return flat.view_as(x)


def _edges(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Outliers where loops begin and end and where threads share a row: each is a visible part of any sum.

    A sum over 131 072 usual values that leaves one out is right to 1e-5 (found: nobody missed the last
    element of a softmax's denominator).
    """
    if not x.dim() or not x.numel():
        return x
    changed = x.clone()
    rows = _long_rows(changed)
    rows[:, _edge_places(rows.shape[-1])] = 100.0 * max(_spread(x), 0.3)
    return changed


def _log_probabilities(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Rows whose exponentials add up to e, half of it at the edges: a logsumexp of 1 shows errors of exp."""
    if not x.dim() or not x.numel():
        return x
    changed = x.clone()
    rows = _long_rows(changed)
    places = _edge_places(rows.shape[-1])
    rows[:, places] = rows.logsumexp(-1, keepdim=True) - math.log(len(places))
    rows.copy_(rows.log_softmax(-1) + 1.0)
    return changed


def _edge_places(length: int) -> list[int]:
    """First and last index, and both sides of quarters and of powers of two."""
    places = {0, length - 1}
    if length >= _SHARED_ROW:
        cuts = [length * i // 4 for i in range(1, 4)]
        cuts += [2**k for k in range(8, length.bit_length()) if 2**k < length]
        places |= {place - back for place in cuts for back in (0, 1)}
    return sorted(places)


def _sprinkled(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """NaN, +inf and −inf at a few places; first and last element (loop edges) among them."""
    flat = x.reshape(-1).clone()
    count = flat.numel()
    if count:
        values = (math.nan, math.inf, -math.inf)
        places = [0, count - 1, *(_index(count, random) for _ in range(min(7, count // 8)))]
        for i, place in enumerate(places):
            flat[place] = values[i % 3]
    return flat.view_as(x)


def _masked_rows(x: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Whole rows of −inf (a fully masked softmax row), one of +inf, one of NaN."""
    rows = x.reshape(-1, x.shape[-1]).clone() if x.dim() and x.numel() else x.clone()
    if rows.dim() == 2 and rows.shape[0]:
        count = rows.shape[0]
        rows[0] = -math.inf
        rows[count // 2] = -math.inf
        if count > 3:
            rows[1] = math.inf
            rows[count - 1] = math.nan
    return rows.view_as(x)


FAMILIES: Final = (
    Family("recorded", _keep, varied=False, quick=True),
    Family("varied", _keep, quick=True),
    Family("shifted", _shifted, quick=True),
    Family("mean 1e4", _mean_1e4),
    Family("large", _large),
    Family("tiny", _tiny),
    Family("equal rows", _equal_rows, coherent=True),
    Family("zeros", _zeros, coherent=True),
    Family("one outlier", _outlier),
    Family("edges", _edges, summing=True),
    Family("log-probabilities", _log_probabilities, summing=True),
    Family("nan and inf", _sprinkled, special=True, quick=True),
    Family("masked rows", _masked_rows, special=True, quick=True),
)


def family(name: str) -> Family:
    return next(f for f in FAMILIES if f.name == name)


def full_stats(region: Region, stats: Sequence[InputStats]) -> tuple[InputStats, ...]:
    """One InputStats per input; what was not recorded is standard normal, or 0 and 1 for integers."""
    if stats and len(stats) != len(region.inputs):
        raise ValueError(f"region has {len(region.inputs)} inputs but {len(stats)} stats were given")
    if stats:
        return tuple(stats)
    normal, bits = InputStats(-4.0, 4.0), InputStats(0, 1, 0.5, 0.5)
    return tuple(normal if spec.is_floating else bits for spec in region.inputs)


def main_inputs(region: Region) -> frozenset[int]:
    """Indices of the floating inputs of (nearly) the largest size."""
    floats = [i for i, spec in enumerate(region.inputs) if spec.dtype in FLOATING]
    largest = max((region.inputs[i].distinct_numel for i in floats), default=0)
    return frozenset(i for i in floats if 2 * region.inputs[i].distinct_numel > largest)


def make_storages(
    region: Region, stats: Sequence[InputStats], how: Family, seed: int, device: str = "cpu"
) -> tuple[torch.Tensor, ...]:
    """The storages (uint8) of all inputs for one family and seed, on ``device``. Deterministic there."""
    mains = main_inputs(region)
    made = []
    for i, (spec, stat) in enumerate(zip(region.inputs, stats, strict=True)):
        random = _generator(device, region.hash, how.name, seed, i)
        made.append(_storage(spec, stat, how, random, i in mains))
    return tuple(made)


def nudged(region: Region, storages: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The same inputs with the middle third of every floating input changed in place.

    What a kernel kept from an earlier call (by pointer, or by looking at the first elements) is stale.
    """
    changed = []
    for spec, data in zip(region.inputs, storages, strict=True):
        if spec.dtype not in FLOATING or spec.numel == 0:
            changed.append(data)
            continue
        copy = data.clone()
        view = view_storage(copy, _compact(spec))
        if not _overlaps(_compact(spec)):
            flat = view.reshape(-1)
            start = flat.numel() // 3
            stop = max(start + 1, (2 * flat.numel()) // 3)
            part = flat[start:stop].clone()
            # Halved rather than only negated: an even function would not notice a sign.
            flat_new = flat.clone()
            flat_new[start:stop] = part * -0.5
            view.copy_(flat_new.view_as(view))
        changed.append(copy)
    return tuple(changed)


def view_storage(data: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """A storage (uint8) as the tensor that ``spec`` describes."""
    import torch

    dtype = torch_dtype(spec.dtype)
    if spec.numel == 0:
        return torch.empty(spec.shape, dtype=dtype, device=data.device)
    return data.view(dtype).as_strided(spec.shape, spec.strides, spec.offset)


def _storage(
    spec: TensorSpec, stat: InputStats, how: Family, random: torch.Generator, is_main: bool
) -> torch.Tensor:
    import torch

    data = torch.full((storage_bytes(spec),), _GAP_FILL, dtype=torch.uint8, device=random.device)
    if spec.numel == 0:
        return data
    if data.data_ptr() % 64:  # pragma: no cover - torch aligns; views below rely on it
        raise AssertionError("unaligned storage")
    compact = _compact(spec)
    if _overlaps(compact):
        # Sliding windows: only the storage as a whole can be filled.
        compact = TensorSpec((spec.extent,), spec.dtype, (1,), spec.offset)
    target = view_storage(data, compact)
    if spec.dtype in FLOATING:
        draft = _floats(compact, stat, how, random)
        if is_main:
            draft = how.change(draft, random)
            top = _LARGEST[spec.dtype]
            draft = torch.where(draft.isfinite(), draft.clamp(-top, top), draft)
        target.copy_(draft)
    else:
        target.copy_(_integers(compact, stat, random))
    return data


def _floats(spec: TensorSpec, stat: InputStats, how: Family, random: torch.Generator) -> torch.Tensor:
    import torch

    dtype = torch.float64 if spec.dtype == "float64" else torch.float32
    draft = torch.empty(spec.shape, dtype=dtype, device=random.device).normal_(generator=random)
    std = stat.std
    if how.varied:
        # A weight recorded as all ones must still be read by the kernel: it varies here.
        std = max(std, 0.25 * abs(stat.mean), 1e-3 if stat.mean else 0.1)
    draft.mul_(std).add_(stat.mean)
    if not how.varied and stat.low <= stat.high:
        draft.clamp_(stat.low, stat.high)
    elif stat.low >= 0:
        draft.abs_()
    elif stat.high <= 0:
        draft.abs_().neg_()
    for fraction, value in ((stat.zeros, 0.0), (stat.inf, -math.inf), (stat.nan, math.nan)):
        # The recorded infinities of models are attention masks: −inf.
        if fraction > 0 and not (value == 0.0 and how.varied and fraction > 0.9):
            draft[torch.rand(spec.shape, generator=random, device=random.device) < fraction] = value
    return draft


def _integers(spec: TensorSpec, stat: InputStats, random: torch.Generator) -> torch.Tensor:
    import torch

    if spec.dtype == "bool":
        share = min(max(stat.mean, 0.0), 1.0)
        return torch.rand(spec.shape, generator=random, device=random.device) < share
    low, high = int(stat.low), int(stat.high)
    return torch.randint(
        low, max(low, high) + 1, spec.shape, generator=random, dtype=torch.int64, device=random.device
    )


def _compact(spec: TensorSpec) -> TensorSpec:
    """The spec with expanded (stride 0) dimensions of size 1: its distinct elements."""
    shape = tuple(
        1 if stride == 0 and n > 1 else n for n, stride in zip(spec.shape, spec.strides, strict=True)
    )
    return TensorSpec(shape, spec.dtype, spec.strides, spec.offset)


def _overlaps(spec: TensorSpec) -> bool:
    """Whether two elements may share memory (conservative: dimensions must nest)."""
    reach = 0
    for stride, size in sorted((s, n) for n, s in zip(spec.shape, spec.strides, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _long_rows(x: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor as (rows, length): trailing dimensions joined until the length is a long sum's."""
    length, dim = x.shape[-1], x.dim() - 1
    while length < _SHARED_ROW and dim > 1:
        dim -= 1
        length *= x.shape[dim]
    return x.view(-1, length)


def _spread(x: torch.Tensor) -> float:
    """A typical magnitude of finite x: its standard deviation, or 1 when that is zero."""
    if x.numel() < 2:
        return 1.0
    finite = x[x.isfinite()]
    spread = float(finite.std()) if finite.numel() > 1 else 1.0
    return spread if spread > 0 and math.isfinite(spread) else 1.0


def _index(count: int, random: torch.Generator) -> int:
    import torch

    return int(torch.randint(count, (1,), generator=random, device=random.device))


def _generator(device: str, *key: object) -> torch.Generator:
    import torch

    digest = hashlib.sha256(repr(key).encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7], "little"))
