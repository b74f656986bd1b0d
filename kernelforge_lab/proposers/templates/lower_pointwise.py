"""Lowerings of elementwise ops, of ops that make tensors from nothing, and of casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import formulas
from .expr import FLOATS, Builder, Expr, compute_type
from .formulas import Scalar
from .index import Affine
from .lowering import Call, Value, as_dtype, lowers
from .tensor import Index, Pointwise, Tensor, broadcast, full

Body = Callable[[Builder, tuple[Expr, ...]], Expr]


def pointwise(
    shape: tuple[int, ...], dtype: str, values: Sequence[Tensor | Scalar], compute: str, body: Body
) -> Tensor:
    """``body`` over the values in ``compute`` type, converted to ``dtype``. Numbers become constants."""
    tensors = tuple(broadcast(v, shape) for v in values if isinstance(v, Tensor))

    def formula(b: Builder, args: tuple[Expr, ...], _index: Index) -> Expr:
        rest = iter(args)
        filled = tuple(
            b.cast(next(rest), compute) if isinstance(v, Tensor) else b.const(v, compute) for v in values
        )
        return b.cast(body(b, filled), dtype)

    return Pointwise(shape, dtype, tensors, formula)


def _elementwise(call: Call, count: int, body: Body, compute: str | None = None) -> Tensor:
    values, _, _ = call.operands(tuple(range(count)))
    return pointwise(call.shape, call.dtype, values, compute or compute_type(call.dtype), body)


@lowers(*formulas.UNARY)
def _unary(call: Call) -> Value:
    return _elementwise(call, 1, formulas.UNARY[call.op.short_name])


@lowers("log_sigmoid_forward")
def _log_sigmoid_forward(call: Call) -> Value:
    result = _elementwise(call, 1, formulas.UNARY["log_sigmoid"])
    return result, full((0,), call.dtype, 0)


@lowers(*formulas.BINARY)
def _binary(call: Call) -> Value:
    name = call.op.short_name
    if name == "pow" and call.op.target.endswith(".Tensor_Scalar"):
        exponent = call.scalar(1, "exponent", 1)
        return _elementwise(call, 1, lambda b, a: formulas.power(b, a[0], exponent))
    return _elementwise(call, 2, formulas.BINARY[name])


@lowers(*formulas.COMPARE)
def _compare(call: Call) -> Value:
    values, dtypes, numbers = call.operands((0, 1))
    compute = formulas.promoted(dtypes, numbers)
    return pointwise(call.shape, "bool", values, compute, formulas.COMPARE[call.op.short_name])


@lowers(*formulas.TEST)
def _test(call: Call) -> Value:
    source = call.tensor(0)
    compute = compute_type(source.dtype)
    if compute not in FLOATS:
        return full(call.shape, "bool", call.op.short_name == "isfinite")
    return pointwise(call.shape, "bool", [source], compute, formulas.TEST[call.op.short_name])


@lowers("add", "sub", "rsub")
def _add(call: Call) -> Value:
    alpha = call.scalar(2, "alpha", 1)
    name = call.op.short_name

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        left, right = (a[1], a[0]) if name == "rsub" else (a[0], a[1])
        right = b.call("mul", (right, b.const(alpha, right.dtype)), right.dtype)
        if left.dtype == "bool":
            return b.call("or", (left, right), "bool")
        return b.call("add" if name == "add" else "sub", (left, right), left.dtype)

    return _elementwise(call, 2, body)


@lowers("div", "true_divide")
def _div(call: Call) -> Value:
    mode = call.arg(2, "rounding_mode")

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        if mode == "floor":
            return b.call("floordiv", a, a[0].dtype)
        quotient = b.call("div", a, a[0].dtype)
        if mode == "trunc" and a[0].dtype in FLOATS:
            return b.call("trunc", (quotient,), a[0].dtype)
        return quotient

    return _elementwise(call, 2, body)


@lowers("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(call: Call) -> Value:
    name = call.op.short_name.removeprefix("logical_")

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        truth = tuple(_truth(b, x) for x in a)
        return b.call(name, truth, "bool")

    values, dtypes, numbers = call.operands((0,) if name == "not" else (0, 1))
    return pointwise(call.shape, "bool", values, formulas.promoted(dtypes, numbers), body)


def _truth(b: Builder, x: Expr) -> Expr:
    return x if x.dtype == "bool" else b.call("ne", (x, b.const(0, x.dtype)), "bool")


@lowers("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "__and__", "__or__", "__xor__")
def _bitwise(call: Call) -> Value:
    name = call.op.short_name.strip("_").removeprefix("bitwise_")

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        logic = name if a[0].dtype == "bool" else f"bit{name}"
        return b.call(logic, a, a[0].dtype)

    return _elementwise(call, 1 if name == "not" else 2, body)


@lowers("where")
def _where(call: Call) -> Value:
    values, _, _ = call.operands((0, 1, 2))
    condition, yes, no = values
    assert isinstance(condition, Tensor)
    return _select(call, condition, yes, no)


@lowers("masked_fill")
def _masked_fill(call: Call) -> Value:
    values, _, _ = call.operands((0, 1, 2))
    source, mask, value = values
    assert isinstance(mask, Tensor)
    return _select(call, mask, value, source)


def _select(call: Call, condition: Tensor, yes: Tensor | Scalar, no: Tensor | Scalar) -> Tensor:
    dtype = call.dtype
    picks = [v for v in (condition, yes, no) if isinstance(v, Tensor)]

    def formula(b: Builder, args: tuple[Expr, ...], _index: Index) -> Expr:
        rest = iter(args)
        test = _truth(b, next(rest))
        sides = [b.cast(next(rest), dtype) if isinstance(v, Tensor) else b.const(v, dtype) for v in (yes, no)]
        return b.where(test, sides[0], sides[1])

    return Pointwise(call.shape, dtype, tuple(picks), formula)


@lowers("clamp", "clamp_min", "clamp_max", "hardtanh")
def _clamp(call: Call) -> Value:
    name = call.op.short_name
    slots = {"clamp_min": (1, None), "clamp_max": (None, 1)}.get(name, (1, 2))
    values: list[Tensor | Scalar] = [call.tensor(0)]
    present: list[bool] = []
    for slot, word, default in zip(slots, ("min", "max"), (-1.0, 1.0), strict=True):
        arg = None if slot is None else call.arg(slot, word if name == "clamp" else f"{word}_val")
        if arg is None and name == "hardtanh":
            arg = default
        bound = call.optional(slot, word) if slot is not None else None
        if bound is not None:
            values.append(bound)
        elif isinstance(arg, bool | int | float):
            values.append(arg)
        present.append(arg is not None)

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        low = a[1] if present[0] else None
        high = a[-1] if present[1] else None
        return formulas.clamp(b, a[0], low, high)

    return pointwise(call.shape, call.dtype, values, compute_type(call.dtype), body)


@lowers("gelu")
def _gelu(call: Call) -> Value:
    approximate = str(call.arg(1, "approximate", "none"))
    return _elementwise(call, 1, lambda b, a: formulas.gelu(b, a[0], approximate))


@lowers("softplus")
def _softplus(call: Call) -> Value:
    beta, threshold = call.scalar(1, "beta", 1), call.scalar(2, "threshold", 20)
    return _elementwise(call, 1, lambda b, a: formulas.softplus(b, a[0], float(beta), float(threshold)))


@lowers("leaky_relu")
def _leaky(call: Call) -> Value:
    slope = float(call.scalar(1, "negative_slope", 0.01))
    return _elementwise(call, 1, lambda b, a: formulas.leaky(b, a[0], slope))


@lowers("elu")
def _elu(call: Call) -> Value:
    alpha, scale, input_scale = (
        float(call.scalar(p, name, 1.0)) for p, name in ((1, "alpha"), (2, "scale"), (3, "input_scale"))
    )
    return _elementwise(call, 1, lambda b, a: formulas.elu(b, a[0], alpha, scale, input_scale))


@lowers("hardshrink", "softshrink")
def _shrink(call: Call) -> Value:
    cut = float(call.scalar(1, "lambd", 0.5))
    hard = call.op.short_name == "hardshrink"

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        x, zero = a[0], b.const(0, a[0].dtype)
        above = b.call("gt", (x, b.const(cut, x.dtype)), "bool")
        below = b.call("lt", (x, b.const(-cut, x.dtype)), "bool")
        high = x if hard else b.call("sub", (x, b.const(cut, x.dtype)), x.dtype)
        low = x if hard else b.call("add", (x, b.const(cut, x.dtype)), x.dtype)
        # NaN fails both comparisons; ATen keeps it.
        inside = b.where(b.call("isnan", (x,), "bool"), x, zero)
        return b.where(above, high, b.where(below, low, inside))

    return _elementwise(call, 1, body)


@lowers("threshold")
def _threshold(call: Call) -> Value:
    cut, value = call.scalar(1, "threshold", 0), call.scalar(2, "value", 0)

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        low = b.call("le", (a[0], b.const(cut, a[0].dtype)), "bool")
        return b.where(low, b.const(value, a[0].dtype), a[0])

    return _elementwise(call, 1, body)


@lowers("nan_to_num")
def _nan_to_num(call: Call) -> Value:
    largest = _LARGEST.get(call.dtype)
    if largest is None:
        return call.tensor(0)
    nan, high, low = call.arg(1, "nan"), call.arg(2, "posinf"), call.arg(3, "neginf")

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        x = a[0]

        def number(arg: object, default: float) -> Expr:
            return b.const(arg if isinstance(arg, int | float) else default, x.dtype)

        infinite = b.call("isinf", (x,), "bool")
        positive = b.call("gt", (x, b.const(0, x.dtype)), "bool")
        replaced = b.where(positive, number(high, largest), number(low, -largest))
        finite = b.where(infinite, replaced, x)
        return b.where(b.call("isnan", (x,), "bool"), number(nan, 0), finite)

    return _elementwise(call, 1, body)


# Largest finite value per dtype (torch.finfo(dtype).max).
_LARGEST = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "bfloat16": 3.3895313892515355e38,
    "float16": 65504.0,
}


@lowers("fmax", "fmin")
def _fmax(call: Call) -> Value:
    """The larger (smaller) one, ignoring a NaN on one side."""
    name = "max" if call.op.short_name == "fmax" else "min"

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        x, y = a
        if x.dtype not in FLOATS:
            return b.call(name, a, x.dtype)
        best = b.where(b.call("isnan", (y,), "bool"), x, b.call(name, a, x.dtype))
        return b.where(b.call("isnan", (x,), "bool"), y, best)

    return _elementwise(call, 2, body)


@lowers("addcmul", "addcdiv")
def _addc(call: Call) -> Value:
    value = call.scalar(3, "value", 1)
    inner = "mul" if call.op.short_name == "addcmul" else "div"

    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        scaled = b.call("mul", (a[1], b.const(value, a[1].dtype)), a[1].dtype)
        return b.call("add", (a[0], b.call(inner, (scaled, a[2]), a[0].dtype)), a[0].dtype)

    return _elementwise(call, 3, body)


@lowers("lerp")
def _lerp(call: Call) -> Value:
    def body(b: Builder, a: tuple[Expr, ...]) -> Expr:
        start, end, weight = a
        step = b.call("mul", (weight, b.call("sub", (end, start), start.dtype)), start.dtype)
        return b.call("add", (start, step), start.dtype)

    return _elementwise(call, 3, body)


@lowers("_to_copy", "to", "type_as", "convert_element_type")
def _cast(call: Call) -> Value:
    return as_dtype(call.tensor(0), call.dtype)


@lowers("full", "full_like", "new_full", "scalar_tensor", "fill")
def _full(call: Call) -> Value:
    position = {"full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0, "fill": 1}[call.op.short_name]
    source = call.optional(position)
    if source is not None:
        return broadcast(as_dtype(source, call.dtype), call.shape)
    return full(call.shape, call.dtype, call.scalar(position, "fill_value", 0))


@lowers("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones")
def _constant(call: Call) -> Value:
    return full(call.shape, call.dtype, 1 if "ones" in call.op.short_name else 0)


@lowers("arange")
def _arange(call: Call) -> Value:
    overload = call.op.target.split(".")[2]
    start: Scalar = 0 if overload == "default" else call.scalar(0, "start", 0)
    step: Scalar = call.scalar(2, "step", 1) if overload == "start_step" else 1
    dtype = call.dtype

    def formula(b: Builder, _args: tuple[Expr, ...], index: Index) -> Expr:
        if isinstance(start, int) and isinstance(step, int):
            return b.cast(b.index(index[0] * step + start), dtype)
        # A fractional range is computed as torch does: start + step·i in double, then converted.
        place = b.cast(b.index(index[0]), "float64")
        scaled = b.call("mul", (place, b.const(step, "float64")), "float64")
        return b.cast(b.call("add", (scaled, b.const(start, "float64")), "float64"), dtype)

    return Pointwise(call.shape, dtype, (), formula)


@lowers("triu", "tril")
def _triangle(call: Call) -> Value:
    diagonal = call.integer(1, "diagonal", 0)
    upper = call.op.short_name == "triu"
    source, dtype = call.tensor(0), call.dtype

    def formula(b: Builder, args: tuple[Expr, ...], index: Index) -> Expr:
        # triu keeps j − i ≥ diagonal, tril keeps j − i ≤ diagonal
        gap: Affine = index[-1] - index[-2]
        below = b.less(gap, diagonal if upper else diagonal + 1)
        zero = b.const(0, dtype)
        return b.where(below, zero, args[0]) if upper else b.where(below, args[0], zero)

    return Pointwise(call.shape, dtype, (source,), formula)


@lowers("eye")
def _eye(call: Call) -> Value:
    def formula(b: Builder, _args: tuple[Expr, ...], index: Index) -> Expr:
        gap = b.index(index[1] - index[0])
        return b.cast(b.call("eq", (gap, b.const(0, "int64")), "bool"), call.dtype)

    return Pointwise(call.shape, call.dtype, (), formula)


@lowers("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
def _empty(call: Call) -> Value:
    # Its elements are never meant to be read; zero is as good as any and repeatable.
    return full(call.shape, call.dtype, 0)
