"""ATen pointwise ops as scalar formulas: which type each computes in, and what it computes.

Composite ones (gelu, softplus …) are written out of primitives, following ATen's definitions
(aten/src/ATen/native/cpu/*Kernel.cpp), so that every target prints only the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from .expr import FLOATS, Builder, Expr, compute_type

Scalar: TypeAlias = "float | int | bool"
# Result of a formula given the arguments in the op's compute type.
OpFormula: TypeAlias = "Callable[[Builder, tuple[Expr, ...]], Expr]"


def _call(name: str) -> OpFormula:
    return lambda b, a: b.call(name, a, a[0].dtype)


def _compare(name: str) -> OpFormula:
    return lambda b, a: b.call(name, a, "bool")


def _scale(b: Builder, x: Expr, by: float) -> Expr:
    return b.call("mul", (x, b.const(by, x.dtype)), x.dtype)


def _plus(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.call("add", (x, y), x.dtype)


def _times(b: Builder, x: Expr, y: Expr) -> Expr:
    return b.call("mul", (x, y), x.dtype)


def _square(b: Builder, a: tuple[Expr, ...]) -> Expr:
    return _times(b, a[0], a[0])


def _relu(b: Builder, a: tuple[Expr, ...]) -> Expr:
    return b.call("max", (a[0], b.const(0, a[0].dtype)), a[0].dtype)


def _silu(b: Builder, a: tuple[Expr, ...]) -> Expr:
    return _times(b, a[0], b.call("sigmoid", (a[0],), a[0].dtype))


def gelu(b: Builder, x: Expr, approximate: str) -> Expr:
    """x·Φ(x): 0.5·x·(1 + erf(x/√2)), or its tanh form x·σ(2·√(2/π)·(x + 0.044715·x³)).

    ½·(1 + tanh u) is σ(2u), without the cancellation at large negative u and with one exponential.
    """
    if approximate == "tanh":
        cubed = _times(b, _times(b, x, x), x)
        inner = _scale(b, _plus(b, x, _scale(b, cubed, 0.044715)), 2 * math.sqrt(2 / math.pi))
        return _times(b, x, b.call("sigmoid", (inner,), x.dtype))
    curve = b.call("erf", (_scale(b, x, math.sqrt(0.5)),), x.dtype)
    return _times(b, _scale(b, x, 0.5), _plus(b, b.const(1, x.dtype), curve))


def softplus(b: Builder, x: Expr, beta: float, threshold: float) -> Expr:
    """log1p(exp(β·x))/β, and x itself where β·x > threshold."""
    scaled = _scale(b, x, beta)
    soft = b.call("log1p", (b.call("exp", (scaled,), x.dtype),), x.dtype)
    soft = b.call("div", (soft, b.const(beta, x.dtype)), x.dtype)
    return b.where(b.call("gt", (scaled, b.const(threshold, x.dtype)), "bool"), x, soft)


def clamp(b: Builder, x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    if low is not None:
        x = b.call("max", (x, low), x.dtype)
    return b.call("min", (x, high), x.dtype) if high is not None else x


def power(b: Builder, x: Expr, exponent: Scalar) -> Expr:
    """x to a constant power, by multiplications and roots where that is exact enough."""
    if exponent == 0:
        return b.const(1, x.dtype)
    if exponent == 1:
        return x
    if exponent == 2:
        return _times(b, x, x)
    if exponent == 3:
        return _times(b, _times(b, x, x), x)
    if exponent == 4:
        return _square(b, (_times(b, x, x),))
    if x.dtype in FLOATS:
        if exponent == 0.5:
            return b.call("sqrt", (x,), x.dtype)
        if exponent == -0.5:
            return b.call("rsqrt", (x,), x.dtype)
        if exponent == -1:
            return b.call("reciprocal", (x,), x.dtype)
        if exponent == -2:
            return b.call("reciprocal", (_times(b, x, x),), x.dtype)
    return b.call("pow", (x, b.const(exponent, x.dtype)), x.dtype)


def _hard(b: Builder, x: Expr) -> Expr:
    """clamp(x + 3, 0, 6) / 6: hardsigmoid."""
    zero, three, six = (b.const(v, x.dtype) for v in (0, 3, 6))
    return b.call("div", (clamp(b, _plus(b, x, three), zero, six), six), x.dtype)


def _hardswish(b: Builder, a: tuple[Expr, ...]) -> Expr:
    return _times(b, a[0], _hard(b, a[0]))


def _mish(b: Builder, a: tuple[Expr, ...]) -> Expr:
    x = a[0]
    return _times(b, x, b.call("tanh", (softplus(b, x, 1.0, 20.0),), x.dtype))


def _log_sigmoid(b: Builder, a: tuple[Expr, ...]) -> Expr:
    """min(0, x) − log1p(exp(−|x|))."""
    x = a[0]
    small = b.call("neg", (b.call("abs", (x,), x.dtype),), x.dtype)
    tail = b.call("log1p", (b.call("exp", (small,), x.dtype),), x.dtype)
    return b.call("sub", (b.call("min", (x, b.const(0, x.dtype)), x.dtype), tail), x.dtype)


def leaky(b: Builder, x: Expr, slope: float) -> Expr:
    return b.where(b.call("gt", (x, b.const(0, x.dtype)), "bool"), x, _scale(b, x, slope))


def elu(b: Builder, x: Expr, alpha: float, scale: float, input_scale: float) -> Expr:
    low = b.call("expm1", (_scale(b, x, input_scale),), x.dtype)
    return b.where(
        b.call("gt", (x, b.const(0, x.dtype)), "bool"),
        _scale(b, x, scale),
        _scale(b, low, alpha * scale),
    )


# Unary ops computed in the result's type.
UNARY: dict[str, OpFormula] = {
    **{
        name: _call(name)
        for name in (
            "neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh "
            "asin acos atan asinh acosh atanh erf erfc sigmoid floor ceil round trunc sign"
        ).split()
    },
    "square": _square,
    "relu": _relu,
    "silu": _silu,
    "hardsigmoid": lambda b, a: _hard(b, a[0]),
    "hardswish": _hardswish,
    "mish": _mish,
    "log_sigmoid": _log_sigmoid,
    "relu6": lambda b, a: clamp(b, a[0], b.const(0, a[0].dtype), b.const(6, a[0].dtype)),
    "frac": lambda b, a: b.call("sub", (a[0], b.call("trunc", (a[0],), a[0].dtype)), a[0].dtype),
}

# Binary ops computed in the result's type.
BINARY: dict[str, OpFormula] = {
    "mul": _call("mul"),
    "maximum": _call("max"),
    "minimum": _call("min"),
    "atan2": _call("atan2"),
    "fmod": _call("fmod"),
    "remainder": _call("remainder"),
    "pow": _call("pow"),
    "floor_divide": _call("floordiv"),
    "copysign": _call("copysign"),
    "hypot": _call("hypot"),
}

# Comparisons: computed in the promoted type of the arguments, result bool.
COMPARE: dict[str, OpFormula] = {name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}

# Tests of one argument, result bool.
TEST: dict[str, OpFormula] = {name: _compare(name) for name in ("isnan", "isinf", "isfinite")}

# On bool: logic; on integers: bits.
LOGIC: dict[str, str] = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


def promoted(dtypes: list[str], scalars: list[Scalar]) -> str:
    """Compute type for comparing these tensors and Python numbers."""
    kinds = {compute_type(d) for d in dtypes}
    if "float64" in kinds:
        return "float64"
    if "float32" in kinds or any(isinstance(s, float) for s in scalars):
        return "float32"
    if kinds <= {"bool"} and all(isinstance(s, bool) for s in scalars):
        return "bool"
    return "int64"
