"""Tensors as functions of an index: what the lowering makes of a region's ops.

A tensor is never stored by itself; ``Evaluator.value(tensor, index)`` unrolls it into a scalar
expression down to input loads and reduction values. Which tensors do get a buffer is the schedule's
choice (``buffers``), so fusing and recomputing are the default and storing is the exception.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...kernels.spec import TensorSpec, contiguous_strides
from .expr import Builder, Expr
from .index import Affine, clamp, flatten, unflatten

Index: TypeAlias = "tuple[Affine, ...]"
Formula: TypeAlias = "Callable[[Builder, tuple[Expr, ...], Index], Expr]"


@dataclass(frozen=True, eq=False)
class Tensor:
    """Shape and dtype (torch name) of a value of the region."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Input(Tensor):
    """A buffer of the kernel's arguments, addressed by the spec's strides."""

    name: str
    spec: TensorSpec


@dataclass(frozen=True, eq=False)
class Pointwise(Tensor):
    """``formula`` of the arguments' elements at the same index (arguments have this very shape)."""

    args: tuple[Tensor, ...]
    formula: Formula


@dataclass(frozen=True, eq=False)
class View(Tensor):
    """Element ``index(i)`` of the source."""

    source: Tensor
    index: Callable[[Index], Index]


@dataclass(frozen=True, eq=False)
class Choice(Tensor):
    """``yes[yes_at(i)]`` where ``test(i) < bound``, else ``no[no_at(i)]``."""

    test: Callable[[Index], Affine]
    bound: int
    yes: Tensor
    yes_at: Callable[[Index], Index]
    no: Tensor
    no_at: Callable[[Index], Index]


@dataclass(frozen=True, eq=False)
class Reduce(Tensor):
    """``kind`` (sum, prod, max, min, any, all, argmax, argmin) over ``dims`` of the source.

    ``shape`` has the kept dims only, in order. ``spread_of`` is set on a sum of squared distances from
    a mean: the sum that mean is made of. A printer may then take both in one sweep (Chan's moments)
    instead of one after the other.
    """

    kind: str
    source: Tensor
    dims: tuple[int, ...]
    spread_of: Reduce | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(d for d in range(len(self.source.shape)) if d not in self.dims)

    @property
    def reduced_shape(self) -> tuple[int, ...]:
        return tuple(self.source.shape[d] for d in self.dims)

    def source_index(self, kept: Index, reduced: Index) -> Index:
        table = dict(zip(self.kept, kept, strict=True)) | dict(zip(self.dims, reduced, strict=True))
        return tuple(table[d] for d in range(len(self.source.shape)))


def full(shape: tuple[int, ...], dtype: str, value: float) -> Tensor:
    return Pointwise(shape, dtype, (), lambda b, _a, _i: b.const(value, dtype))


def broadcast(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``tensor`` expanded to ``shape`` by torch's rules."""
    if tensor.shape == shape:
        return tensor
    missing = len(shape) - len(tensor.shape)
    fixed = tuple(n == 1 and shape[missing + d] != 1 for d, n in enumerate(tensor.shape))

    def index(i: Index) -> Index:
        return tuple(Affine(()) if one else c for c, one in zip(i[missing:], fixed, strict=True))

    return View(shape, tensor.dtype, tensor, index)


def reshape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Row-major reshape. Runs of dims that stay as they are keep their own index (no division)."""
    if tensor.shape == shape:
        return tensor
    groups = _matching_groups(tensor.shape, shape)

    def index(i: Index) -> Index:
        out: list[Affine] = []
        for old, new in groups:
            sizes = tuple(shape[d] for d in range(*new))
            flat = flatten(i[new[0] : new[1]], contiguous_strides(sizes))
            out += unflatten(flat, tuple(tensor.shape[d] for d in range(*old)))
        return tuple(out)

    return View(shape, tensor.dtype, tensor, index)


def _matching_groups(
    old: tuple[int, ...], new: tuple[int, ...]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Smallest consecutive dim ranges of both shapes with equal products."""
    groups: list[tuple[tuple[int, int], tuple[int, int]]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        a0, b0 = a, b
        x = y = 1
        if a < len(old):
            x, a = old[a], a + 1
        if b < len(new):
            y, b = new[b], b + 1
        while x != y:
            if (x < y and a < len(old)) or b == len(new):
                x, a = x * old[a], a + 1
            else:
                y, b = y * new[b], b + 1
        groups.append(((a0, a), (b0, b)))
    return groups


@dataclass
class Evaluator:
    """Unrolls tensors into expressions for one place in the loop nest.

    ``stored`` maps tensors that live in a buffer to (buffer name, strides of the shape); asking for
    such a tensor gives a load. Reductions without a buffer give a ``row`` expression: the schedule
    has put their value into a scalar of the same nest. ``seen`` records every (tensor, index) asked for.
    """

    build: Builder
    stored: dict[Tensor, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    cached: Callable[[Tensor, Index], Expr | None] | None = None
    seen: dict[tuple[Tensor, Index], Expr] = field(default_factory=dict)

    def value(self, tensor: Tensor, index: Index) -> Expr:
        """Expression of one element; the result has the tensor's compute type."""
        key = (tensor, index)
        found = self.seen.get(key)
        if found is None:
            found = self.cached(tensor, index) if self.cached is not None else None
            if found is None:
                found = self._unroll(tensor, index)
            self.seen[key] = found
        return found

    def _unroll(self, tensor: Tensor, index: Index) -> Expr:
        build = self.build
        stored = self.stored.get(tensor)
        if stored is not None:
            return build.load(stored[0], flatten(index, stored[1]), tensor.dtype)
        if isinstance(tensor, Input):
            return build.load(tensor.name, flatten(index, tensor.spec.strides), tensor.dtype)
        if isinstance(tensor, View):
            value = self.value(tensor.source, tensor.index(index))
            return build.cast(value, tensor.dtype)
        if isinstance(tensor, Pointwise):
            return tensor.formula(build, tuple(self.value(a, index) for a in tensor.args), index)
        if isinstance(tensor, Choice):
            return self._choose(tensor, index)
        if isinstance(tensor, Reduce):
            return build.make("row", (), build.const(0, tensor.dtype).dtype, (tensor, index))
        raise TypeError(f"cannot evaluate {type(tensor).__name__}")

    def _choose(self, tensor: Choice, index: Index) -> Expr:
        condition = self.build.less(tensor.test(index), tensor.bound)
        if condition.is_const and condition.attr:
            return self.value(tensor.yes, tensor.yes_at(index))
        if condition.is_const:
            return self.value(tensor.no, tensor.no_at(index))
        # Both branches are computed, so both addresses must be valid whatever the condition says.
        return self.build.where(
            condition,
            self.value(tensor.yes, _within(tensor.yes, tensor.yes_at(index))),
            self.value(tensor.no, _within(tensor.no, tensor.no_at(index))),
        )


def _within(tensor: Tensor, index: Index) -> Index:
    return tuple(clamp(a, 0, n - 1) for a, n in zip(index, tensor.shape, strict=True))
