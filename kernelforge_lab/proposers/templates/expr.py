"""Scalar expressions: what one element of a kernel computes. Interned, so equal ones are one object."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .index import Affine, constant

# Arithmetic happens in these C types; narrow floats are widened to float32 on load and rounded on store,
# which is at least as exact as eager's rounding after each op.
_COMPUTE = {"bfloat16": "float32", "float16": "float32"}
FLOATS = ("float32", "float64")


def compute_type(dtype: str) -> str:
    return _COMPUTE.get(dtype, dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Expr:
    """``op`` applied to ``args``; ``attr`` holds what is not an expression.

    op        attr                              meaning
    load      (buffer, Affine)                  element of a named buffer, widened to dtype
    row       (reduction id, index affines)     value of a reduction at an index
    const     Python number                     literal
    index     Affine                            an index as an integer value
    less      (Affine, int)                     index condition ``affine < int``
    cast      None                              conversion of args[0]
    other     None                              a function of the arguments, named as in the table of ops
    """

    op: str
    args: tuple[Expr, ...]
    dtype: str
    attr: Any = None

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def walk(self) -> Iterator[Expr]:
        """Every distinct subexpression, arguments first."""
        seen: set[int] = set()
        stack: list[tuple[Expr, bool]] = [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                yield node
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args) if id(a) not in seen)

    def affines(self) -> Iterator[Affine]:
        """The index expressions of this node alone."""
        if self.op in ("load", "less"):
            yield self.attr[1] if self.op == "load" else self.attr[0]
        elif self.op == "row":
            yield from self.attr[1]
        elif self.op == "index":
            yield self.attr


class Builder:
    """Makes interned expressions with the obvious constants folded."""

    def __init__(self) -> None:
        self._pool: dict[tuple[Any, ...], Expr] = {}

    def make(self, op: str, args: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
        key = (op, tuple(map(id, args)), dtype, (type(attr), str(attr)) if op == "const" else attr)
        found = self._pool.get(key)
        if found is None:
            found = self._pool[key] = Expr(op, args, dtype, attr)
        return found

    def const(self, value: float | int | bool, dtype: str) -> Expr:
        dtype = compute_type(dtype)
        if dtype in FLOATS:
            value = float(value)
        elif dtype == "bool":
            value = bool(value)
        else:
            value = int(value)
        return self.make("const", (), dtype, value)

    def load(self, buffer: str, address: Affine, dtype: str) -> Expr:
        return self.make("load", (), compute_type(dtype), (buffer, address))

    def index(self, affine: Affine) -> Expr:
        return (
            self.const(affine.const, "int64") if affine.is_const else self.make("index", (), "int64", affine)
        )

    def less(self, affine: Affine, bound: int) -> Expr:
        low, high = affine.bounds()
        if high < bound:
            return self.const(True, "bool")
        if low >= bound:
            return self.const(False, "bool")
        return self.make("less", (), "bool", (affine - affine.const, bound - affine.const))

    def cast(self, value: Expr, dtype: str) -> Expr:
        dtype = compute_type(dtype)
        if value.dtype == dtype:
            return value
        if value.is_const and not (isinstance(value.attr, float) and not math.isfinite(value.attr)):
            return self.const(value.attr, dtype)
        if value.is_const and dtype in FLOATS:
            return self.const(value.attr, dtype)
        return self.make("cast", (value,), dtype)

    def where(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        if condition.is_const:
            return yes if condition.attr else no
        if yes is no:
            return yes
        return self.make("where", (condition, yes, no), yes.dtype)

    def call(self, op: str, args: tuple[Expr, ...], dtype: str) -> Expr:
        """A function of ``args``, all of the type the op computes in; ``dtype`` of the result."""
        return _simplify(self, op, args, compute_type(dtype))


def _simplify(build: Builder, op: str, args: tuple[Expr, ...], dtype: str) -> Expr:
    if op in ("add", "mul") and args[0].is_const and not args[1].is_const:
        args = (args[1], args[0])
    if len(args) == 2 and args[1].is_const:
        value = args[1].attr
        if (op == "mul" and value == 1) or (op in ("add", "sub") and value == 0 and dtype not in FLOATS):
            return args[0]
        if op in ("div", "truediv") and value == 1 and args[0].dtype == dtype:
            return args[0]
    if op in ("and", "or") and any(a.is_const for a in args):
        value, other = (args[0].attr, args[1]) if args[0].is_const else (args[1].attr, args[0])
        if op == "and":
            return other if value else build.const(False, "bool")
        return build.const(True, "bool") if value else other
    if op == "not" and args[0].is_const:
        return build.const(not args[0].attr, "bool")
    if len(args) == 2 and all(a.is_const for a in args) and op in _FOLD and args[0].dtype not in FLOATS:
        return build.const(_FOLD[op](args[0].attr, args[1].attr), dtype)
    return build.make(op, args, dtype)


# Integer and bool constants only: float folding would have to repeat float32 rounding.
_FOLD = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

__all__ = ["FLOATS", "Builder", "Expr", "compute_type", "constant"]
