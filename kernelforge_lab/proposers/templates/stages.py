"""Stages: the things a kernel must compute one by one — every reduction and every output.

Each gets loop variables over its domain, split until every reshape inside is plain strided
addressing, and its body as an expression over earlier reductions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...kernels.spec import contiguous_strides
from .expr import Builder, Expr
from .index import Affine, Var, flatten, mixed_radix, splits, substitute, variable
from .tensor import Choice, Evaluator, Index, Pointwise, Reduce, Tensor, View

# Reshapes of real models need one or two rounds; the cap only guards against a loop.
_SPLIT_ROUNDS = 12


@dataclass
class Stage:
    """A reduction, or an output stored through ``strides`` into ``buffer``.

    ``kept`` indexes the result's dims and ``reduced`` the reduced ones, as affine forms over ``vars``.
    """

    tensor: Tensor
    kept: Index
    reduced: Index
    vars: list[Var]
    buffer: str = ""
    strides: tuple[int, ...] = ()
    reduced_names: frozenset[str] = frozenset()
    refs: dict[Reduce, list[Index]] = field(default_factory=dict)

    @property
    def source(self) -> Tensor:
        return self.tensor.source if self.is_reduce and isinstance(self.tensor, Reduce) else self.tensor

    @property
    def is_reduce(self) -> bool:
        return not self.buffer

    @property
    def source_index(self) -> Index:
        if self.is_reduce and isinstance(self.tensor, Reduce):
            return self.tensor.source_index(self.kept, self.reduced)
        return self.kept

    def own_rows(self) -> tuple[tuple[Var, int], ...] | None:
        """The kept variables as digits of the row number."""
        return mixed_radix(flatten(self.kept, contiguous_strides(self.tensor.shape)))

    def ref_rows(self, reduce: Reduce) -> tuple[tuple[Var, int], ...] | None:
        """Digits of ``reduce``'s row number in this stage's variables, when every row is met the same way."""
        found: set[tuple[tuple[Var, int], ...] | None] = set()
        for index in self.refs[reduce]:
            digits = mixed_radix(flatten(index, contiguous_strides(reduce.shape)))
            rows = 1
            for var, _ in digits or ():
                rows *= var.extent
            found.add(digits if rows == reduce.numel else None)
        return found.pop() if len(found) == 1 else None

    def split(self, name: str, size: int) -> None:
        """Replace variable ``name`` by an outer and an inner one with ``size`` values."""
        at = next(k for k, v in enumerate(self.vars) if v.name == name)
        old = self.vars[at]
        outer, inner = Var(f"{name}o", 0, old.hi // size), Var(f"{name}i", 0, size)
        self.vars[at : at + 1] = [outer, inner]
        self.replace({name: variable(outer) * size + variable(inner)})
        if name in self.reduced_names:
            self.reduced_names |= {outer.name, inner.name}

    def replace(self, table: dict[str, Affine]) -> None:
        self.kept = tuple(substitute(a, table) for a in self.kept)
        self.reduced = tuple(substitute(a, table) for a in self.reduced)


def reductions(outputs: tuple[Tensor, ...]) -> list[Reduce]:
    """Every reduction below the outputs, sources first."""
    order: list[Reduce] = []
    seen: set[int] = set()
    stack: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(outputs)]
    while stack:
        tensor, done = stack.pop()
        if done:
            if isinstance(tensor, Reduce):
                order.append(tensor)
            continue
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        stack.append((tensor, True))
        stack.extend((t, False) for t in children(tensor))
    return order


def children(tensor: Tensor) -> Iterator[Tensor]:
    if isinstance(tensor, Pointwise):
        yield from tensor.args
    elif isinstance(tensor, View | Reduce):
        yield tensor.source
    elif isinstance(tensor, Choice):
        yield tensor.yes
        yield tensor.no


def reduce_stage(build: Builder, tensor: Reduce, number: int) -> Stage:
    kept, kept_vars = _loops(f"s{number}k", tensor.shape)
    reduced, reduced_vars = _loops(f"s{number}r", tensor.reduced_shape)
    stage = Stage(tensor, kept, reduced, [*kept_vars, *reduced_vars])
    stage.reduced_names = frozenset(v.name for v in reduced_vars)
    return _settle(build, stage)


def store_stage(build: Builder, tensor: Tensor, number: int, buffer: str, strides: tuple[int, ...]) -> Stage:
    kept, names = _loops(f"s{number}k", tensor.shape)
    return _settle(build, Stage(tensor, kept, (), list(names), buffer, strides))


def _loops(prefix: str, shape: tuple[int, ...]) -> tuple[Index, list[Var]]:
    variables = [Var(f"{prefix}{d}_", 0, n) for d, n in enumerate(shape)]
    return tuple(variable(v) for v in variables), [v for v in variables if v.extent > 1]


def _settle(build: Builder, stage: Stage) -> Stage:
    """Split loops until no division is left that a split can remove, then note the reductions used."""
    for _ in range(_SPLIT_ROUNDS):
        body = Evaluator(build).value(stage.source, stage.source_index)
        wanted = next((s for a in all_affines(body, rows=True) for s in splits(a)), None)
        if wanted is None:
            break
        stage.split(*wanted)
    stage.refs = {}
    for node in body.walk():
        if node.op == "row":
            reduce, index = node.attr
            stage.refs.setdefault(reduce, []).append(index)
    return stage


def all_affines(body: Expr, *, rows: bool = False) -> Iterator[Affine]:
    """Every index expression of a body; those of reduction values only with ``rows``."""
    for node in body.walk():
        if node.op != "row" or rows:
            yield from node.affines()
