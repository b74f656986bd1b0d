"""Region ops → tensors-as-functions. One small function per family of ATen ops, in a table by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ...kernels.region import Arg, Op, Ref, Region, Symbol
from .expr import compute_type
from .formulas import Scalar
from .tensor import Input, Pointwise, Tensor, broadcast

Value: TypeAlias = "Tensor | tuple[Tensor, ...]"


class Unsupported(Exception):
    """An op (or a use of it) that the templates do not write; the text says which."""


@dataclass
class Call:
    """One op being lowered, its arguments by position or name with torch's defaults."""

    op: Op
    values: dict[str, Tensor]

    def arg(self, position: int, name: str = "", default: Arg = None) -> Arg:
        if position < len(self.op.args):
            return self.op.args[position]
        return dict(self.op.kwargs).get(name, default)

    def tensor(self, position: int, name: str = "") -> Tensor:
        value = self.optional(position, name)
        if value is None:
            raise Unsupported(f"{self.op.target}: argument {position} is not a tensor")
        return value

    def optional(self, position: int, name: str = "") -> Tensor | None:
        arg = self.arg(position, name)
        return self.values[arg.name] if isinstance(arg, Ref) else None

    def tensors(self, position: int) -> tuple[Tensor, ...]:
        arg = self.arg(position)
        assert isinstance(arg, tuple)
        return tuple(self.values[a.name] for a in arg if isinstance(a, Ref))

    def scalar(self, position: int, name: str, default: Scalar) -> Scalar:
        arg = self.arg(position, name, default)
        if isinstance(arg, bool | int | float):
            return arg
        raise Unsupported(f"{self.op.target}: {name} is not a number")

    def integer(self, position: int, name: str, default: int) -> int:
        return int(self.scalar(position, name, default))

    def flag(self, position: int, name: str, default: bool = False) -> bool:
        return bool(self.scalar(position, name, default))

    def ints(self, position: int, name: str = "") -> tuple[int, ...] | None:
        arg = self.arg(position, name)
        if arg is None:
            return None
        if isinstance(arg, int):
            return (arg,)
        assert isinstance(arg, tuple)
        return tuple(int(a) for a in arg if isinstance(a, int))

    def dims(self, position: int, rank: int, name: str = "dim") -> tuple[int, ...]:
        """Reduction dims, normalised; absent or empty means all."""
        found = self.ints(position, name)
        if not found:
            return tuple(range(rank))
        return tuple(sorted(d % max(rank, 1) for d in found)) if rank else ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.out(0)[0]

    @property
    def dtype(self) -> str:
        return self.out(0)[1]

    def out(self, k: int) -> tuple[tuple[int, ...], str]:
        spec = self.op.outs[k]
        if spec is None:
            raise Unsupported(f"{self.op.target}: result {k} has no spec")
        return spec.shape, spec.dtype

    def operands(self, positions: tuple[int, ...]) -> tuple[list[Tensor | Scalar], list[str], list[Scalar]]:
        """The arguments as broadcast tensors or numbers, with the dtypes and numbers among them."""
        values: list[Tensor | Scalar] = []
        dtypes: list[str] = []
        numbers: list[Scalar] = []
        for p in positions:
            arg = self.arg(p)
            if isinstance(arg, Ref):
                tensor = self.values[arg.name]
                values.append(broadcast(tensor, self.shape))
                dtypes.append(tensor.dtype)
            elif isinstance(arg, bool | int | float):
                values.append(arg)
                numbers.append(arg)
            else:
                raise Unsupported(f"{self.op.target}: argument {p} is {arg!r}")
        return values, dtypes, numbers


Lowering: TypeAlias = "Callable[[Call], Value]"
TABLE: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a lowering for ATen packets (``add``) or single overloads (``max.dim``)."""

    def register(function: Lowering) -> Lowering:
        for name in names:
            TABLE[name] = function
        return function

    return register


def find(op: Op) -> Lowering | None:
    namespace, packet, overload = op.target.split(".")
    if namespace != "aten":
        return None
    return TABLE.get(f"{packet}.{overload}") or TABLE.get(packet)


@dataclass(frozen=True)
class Lowered:
    """Inputs and outputs of a region as tensors."""

    inputs: tuple[Input, ...]
    outputs: tuple[Tensor, ...]


def lower(region: Region) -> Lowered:
    """Raises Unsupported naming the first op that has no lowering or is used in an unknown way."""
    from . import lower_pointwise, lower_reductions, lower_views  # noqa: F401  (fill TABLE)

    inputs = tuple(
        Input(spec.shape, spec.dtype, name, spec)
        for name, spec in zip(region.input_names, region.inputs, strict=True)
    )
    values: dict[str, Tensor] = {t.name: t for t in inputs}
    for op in region.ops:
        lowering = find(op)
        if lowering is None:
            raise Unsupported(f"no template for {op.target}")
        result = lowering(Call(op, values))
        if op.is_tuple:
            assert isinstance(result, tuple)
            values.update({f"{op.name}.{k}": value for k, value in enumerate(result)})
        else:
            assert isinstance(result, Tensor)
            values[op.name] = result
    return Lowered(inputs, tuple(values[name] for name in region.results))


def as_dtype(tensor: Tensor, dtype: str) -> Tensor:
    """The tensor converted: to another number format only, rounding happens when it is stored."""
    if tensor.dtype == dtype:
        return tensor
    compute = compute_type(dtype)
    if compute_type(tensor.dtype) == compute:
        return Pointwise(tensor.shape, dtype, (tensor,), lambda _b, a, _i: a[0])
    return Pointwise(tensor.shape, dtype, (tensor,), lambda b, a, _i: b.cast(a[0], dtype))


def symbol(arg: Arg, kind: str) -> str | None:
    return arg.value if isinstance(arg, Symbol) and arg.kind == kind else None
