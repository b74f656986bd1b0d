"""Scalar expressions and index forms as C++ text, in the vocabulary that every target's prelude has."""

from __future__ import annotations

import math
from collections.abc import Callable

from .expr import FLOATS, Expr
from .index import Affine, Clamp, Div, Mod, Var

C_TYPE = {
    "float64": "double",
    "float32": "float",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
}

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "&&",
    "or": "||",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
}
# Functions of the prelude that need their type spelled out, because arguments may be narrower.
_TYPED = ("max", "min", "remainder", "floordiv", "fmod", "pow")


def affine_text(a: Affine) -> str:
    """C++ integer expression of an index form."""
    parts: list[str] = []
    for atom, coef in a.terms:
        text = _atom_text(atom)
        if coef == -1:
            text = f"-{text}"
        elif coef != 1:
            text = f"{text} * {coef}"
        parts.append(text)
    if a.const or not parts:
        parts.append(str(a.const))
    return " + ".join(parts).replace("+ -", "- ")


def _atom_text(atom: Var | Div | Mod | Clamp) -> str:
    if isinstance(atom, Var):
        return atom.name
    inner = affine_text(atom.of)
    low, _ = atom.of.bounds()
    if isinstance(atom, Clamp):
        return f"kf::min<long>(kf::max<long>({inner}, {atom.lo}), {atom.hi})"
    if isinstance(atom, Div):
        return f"(({inner}) / {atom.by})" if low >= 0 else f"kf::floordiv<long>({inner}, {atom.by})"
    return f"(({inner}) % {atom.by})" if low >= 0 else f"kf::remainder<long>({inner}, {atom.by})"


def literal(value: float | int | bool, dtype: str) -> str:
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in FLOATS:
        return f"INT64_C({value})" if abs(int(value)) >= 2**31 else str(int(value))
    kind = C_TYPE[dtype]
    if math.isnan(value):
        return f"kf::nan<{kind}>()"
    if math.isinf(value) or (dtype == "float32" and abs(value) > 3.4028235677973366e38):
        return f"{'-' if value < 0 else ''}kf::infinity<{kind}>()"
    text = repr(float(value))
    return f"{text}f" if dtype == "float32" else text


def expr_text(node: Expr, use: Callable[[Expr], str]) -> str:
    """One node with its arguments' texts from ``use``."""
    if node.op == "const":
        text = literal(node.attr, node.dtype)
        return f"({text})" if text.startswith("-") else text
    if node.op == "index":
        return f"int64_t({affine_text(node.attr)})"
    if node.op == "less":
        return f"({affine_text(node.attr[0])} < {node.attr[1]})"
    return _call_text(node, [use(a) for a in node.args])


def _call_text(node: Expr, args: list[str]) -> str:
    kind = C_TYPE[node.dtype]
    if node.op in _INFIX:
        text = f"({args[0]} {_INFIX[node.op]} {args[1]})"
        # C++ computes narrow integers in int; back to the type torch computes in.
        return f"{kind}{text}" if node.dtype in ("int8", "uint8", "int16") else text
    if node.op in ("isnan", "isinf", "isfinite"):
        return _float_test(node.op, args[0], node.args[0].dtype)
    template = _FORMS.get(node.op)
    if template is not None:
        return template.format(*args, kind=kind, one=literal(1, node.dtype))
    if node.op == "cast":
        return f"({args[0]} != 0)" if node.dtype == "bool" else f"{kind}({args[0]})"
    typed = f"<{kind}>" if node.op in _TYPED else ""
    return f"kf::{node.op}{typed}({', '.join(args)})"


_FORMS = {
    "where": "({0} ? {1} : {2})",
    "xor": "({0} != {1})",
    "not": "!{0}",
    "bitnot": "{kind}(~{0})",
    "neg": "{kind}(-{0})",
    "reciprocal": "({one} / {0})",
}


def _float_test(op: str, x: str, dtype: str) -> str:
    limit = f"kf::largest<{C_TYPE[dtype]}>()"
    if op == "isnan":
        return f"({x} != {x})"
    return f"(kf::abs({x}) > {limit})" if op == "isinf" else f"(kf::abs({x}) <= {limit})"
