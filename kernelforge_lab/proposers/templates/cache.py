"""Values that a row keeps from one pass to the next instead of computing them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ...kernels.spec import contiguous_strides
from .expr import Builder, Expr, compute_type
from .index import Affine, Var, flatten
from .plan import RowBuffer, Segment, Store
from .stages import children
from .tensor import Evaluator, Index, Input, Pointwise, Reduce, Tensor

# Rough cost of an op in units of one addition; what is not named costs 1.
_HEAVY_COST = 10
_COSTS = dict.fromkeys(
    "exp exp2 expm1 log log2 log10 log1p tanh erf erfc sigmoid sin cos tan pow".split(), _HEAVY_COST
) | {"div": 3, "sqrt": 3, "rsqrt": 4, "reciprocal": 3}
# Cost from which a value is worth keeping: more than a load and an op, or a transcendental.
_WORTH = {"heavy": _HEAVY_COST, "all": 3}
# A row's scratch must stay in the core's own cache and on its thread's stack.
_MAX_BYTES = 256 * 1024

# (coefficient, extent) pairs of the inner loops: which places of the tensor a pass visits.
Places: TypeAlias = "tuple[tuple[int, int], ...]"
RowPart: TypeAlias = "tuple[tuple[tuple[str, int], ...], int]"


@dataclass
class _Computed:
    """Where a pass computed a tensor: per segment the index asked for and its expression."""

    rows: RowPart
    places: Places
    at: list[tuple[Index, Expr]]
    segments: list[Segment]
    buffer: RowBuffer | None = None


@dataclass
class RowCache:
    """``level``: none, heavy or all (plan.Strategy.cache)."""

    build: Builder
    level: str
    row_names: list[str]
    buffers: list[RowBuffer] = field(default_factory=list)
    _computed: dict[Tensor, list[_Computed]] = field(default_factory=dict)
    _inner: list[Var] = field(default_factory=list)
    _costs: dict[Tensor, int] = field(default_factory=dict)

    def lookup(self, tensor: Tensor, index: Index) -> Expr | None:
        """A load of the kept value when an earlier pass of this row computed just this place."""
        known = self._computed.get(tensor)
        if known is None or self.level == "none" or self._cost(tensor) < _WORTH[self.level]:
            return None
        flat = flatten(index, contiguous_strides(tensor.shape))
        if not flat.is_plain:
            return None
        rows, inner = self._parts(flat)
        for computed in known:
            if computed.rows == rows and self._inside(inner, computed.places):
                buffer = computed.buffer or self._keep(tensor, computed)
                if buffer is not None:
                    return self.build.load(buffer.name, inner, buffer.dtype)
        return None

    def note(self, inner: list[Var], evaluators: list[Evaluator], segments: list[Segment]) -> None:
        """Remember what a finished pass computed in every one of its segments."""
        if self.level == "none":
            return
        first, *others = evaluators
        for (tensor, index), value in list(first.seen.items()):
            if not isinstance(tensor, Pointwise) or value.op in ("load", "const", "row"):
                continue
            flat = flatten(index, contiguous_strides(tensor.shape))
            if not flat.is_plain:
                continue
            rows, part = self._parts(flat)
            at = [(index, value)]
            for evaluator in others:
                hit = self._same_place(evaluator, tensor, rows, part)
                if hit is None:
                    break
                at.append(hit)
            extents = {v.name: v.extent for v in inner}
            places = _places(part, extents)
            if len(at) == len(segments) and places:
                self._computed.setdefault(tensor, []).append(_Computed(rows, places, at, segments))

    def _same_place(
        self, evaluator: Evaluator, tensor: Tensor, rows: RowPart, part: Affine
    ) -> tuple[Index, Expr] | None:
        for (other, index), value in evaluator.seen.items():
            if other is tensor:
                flat = flatten(index, contiguous_strides(tensor.shape))
                if (
                    flat.is_plain
                    and self._parts(flat)[0] == rows
                    and _names(self._parts(flat)[1]) == _names(part)
                ):
                    return index, value
        return None

    def _parts(self, flat: Affine) -> tuple[RowPart, Affine]:
        """The row's share of a flat index (with the constant) and the inner loops' share."""
        rows = tuple((a.name, c) for a, c in flat.terms if isinstance(a, Var) and a.name in self.row_names)
        inner = tuple((a, c) for a, c in flat.terms if isinstance(a, Var) and a.name not in self.row_names)
        return (rows, flat.const), Affine(inner)

    def _inside(self, inner: Affine, places: Places) -> bool:
        """The places asked for are the places kept (segments: a part of them)."""
        asked = _places(inner, {a.name: a.hi for a, _ in inner.terms if isinstance(a, Var)})
        if any(isinstance(a, Var) and a.lo for a, _ in inner.terms):
            return False
        return asked == places

    def _keep(self, tensor: Tensor, computed: _Computed) -> RowBuffer | None:
        size = 1 + sum(c * (n - 1) for c, n in computed.places)
        dtype = compute_type(tensor.dtype)
        used = sum(b.size for b in self.buffers) * 8
        if (size * 8) + used > _MAX_BYTES:
            return None
        buffer = RowBuffer(f"kept{len(self.buffers)}", dtype, size)
        self.buffers.append(buffer)
        for segment, (index, value) in zip(computed.segments, computed.at, strict=True):
            flat = flatten(index, contiguous_strides(tensor.shape))
            _, inner = self._parts(flat)
            segment.stores.append(Store(buffer.name, inner, dtype, value))
        computed.buffer = buffer
        return buffer

    def _cost(self, tensor: Tensor) -> int:
        found = self._costs.get(tensor)
        if found is None:
            if isinstance(tensor, Input):
                found = 1
            elif isinstance(tensor, Reduce):
                found = 0
            else:
                found = sum(self._cost(c) for c in children(tensor)) + self._own_cost(tensor)
            self._costs[tensor] = found = min(found, 1000)
        return found

    def _own_cost(self, tensor: Tensor) -> int:
        """Cost of the formula alone: its ops on opaque arguments."""
        if not isinstance(tensor, Pointwise):
            return 0
        build = Builder()
        args = tuple(build.make("opaque", (), compute_type(a.dtype), k) for k, a in enumerate(tensor.args))
        index = tuple(Affine(((Var(f"d{d}", 0, max(n, 2)), 1),)) for d, n in enumerate(tensor.shape))
        body = tensor.formula(build, args, index)
        return sum(
            _COSTS.get(n.op, 1)
            for n in body.walk()
            if n.op not in ("opaque", "const", "index", "less", "cast")
        )


def _names(part: Affine) -> tuple[tuple[str, int], ...]:
    return tuple((a.name, c) for a, c in part.terms if isinstance(a, Var))


def _places(part: Affine, extents: dict[str, int]) -> Places:
    """Normal form of the set of places: contiguous loops merged, fastest first."""
    found = sorted((c, extents[a.name]) for a, c in part.terms if isinstance(a, Var) and a.name in extents)
    merged: list[tuple[int, int]] = []
    for coef, extent in found:
        if merged and merged[-1][0] * merged[-1][1] == coef:
            merged[-1] = (merged[-1][0], merged[-1][1] * extent)
        else:
            merged.append((coef, extent))
    return tuple(merged)
