"""Lowerings of reductions and of the composites made of them (softmax, norms, variance)."""

from __future__ import annotations

from .expr import Builder, Expr, compute_type
from .lower_pointwise import pointwise
from .lowering import Call, Unsupported, Value, as_dtype, lowers
from .tensor import Index, Reduce, Tensor, View, full, reshape


def reduce(
    kind: str,
    source: Tensor,
    dims: tuple[int, ...],
    dtype: str,
    keepdim: bool = True,
    *,
    spread_of: Reduce | None = None,
) -> Tensor:
    """``kind`` over ``dims``; with keepdim they stay as size 1."""
    kept = tuple(n for d, n in enumerate(source.shape) if d not in dims)
    result = Reduce(kept, dtype, kind, source, dims, spread_of)
    if not keepdim:
        return result
    shape = tuple(1 if d in dims else n for d, n in enumerate(source.shape))

    def index(i: Index) -> Index:
        return tuple(c for d, c in enumerate(i) if d not in dims)

    return View(shape, dtype, result, index)


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    total = 1
    for d in dims:
        total *= shape[d]
    return total


def _wide(dtype: str) -> str:
    """The dtype that carries a reduction between ops: never rounded to a narrow float."""
    return compute_type(dtype)


def _map(op: str, *values: Tensor | float, shape: tuple[int, ...], dtype: str) -> Tensor:
    compute = compute_type(dtype)
    return pointwise(shape, dtype, values, compute, lambda b, a: b.call(op, a, compute))


def mean(source: Tensor, dims: tuple[int, ...], dtype: str, keepdim: bool = True) -> Tensor:
    total = reduce("sum", as_dtype(source, dtype), dims, dtype, keepdim)
    # A division, as in eager: the mean of equal numbers is then that number.
    return _map("div", total, float(_count(source.shape, dims)), shape=total.shape, dtype=dtype)


def variance(
    source: Tensor, dims: tuple[int, ...], dtype: str, correction: float = 0.0
) -> tuple[Tensor, Tensor]:
    """(variance, mean), both with kept dims: two passes, so that a large mean costs no digits."""
    wide = as_dtype(source, dtype)
    sums = reduce("sum", wide, dims, dtype)
    middle = _map("div", sums, float(_count(source.shape, dims)), shape=sums.shape, dtype=dtype)
    gap = _map("sub", wide, middle, shape=source.shape, dtype=dtype)
    squares = _map("mul", gap, gap, shape=source.shape, dtype=dtype)
    assert isinstance(sums, View) and isinstance(sums.source, Reduce)
    total = reduce("sum", squares, dims, dtype, spread_of=sums.source)
    freedom = max(_count(source.shape, dims) - correction, 0.0)
    return _map("div", total, freedom, shape=total.shape, dtype=dtype), middle


def _centre(source: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x − mean, mean, rstd) over ``dims``, in the compute type."""
    dtype = _wide(source.dtype)
    var, middle = variance(source, dims, dtype)
    shifted = _map("add", var, eps, shape=var.shape, dtype=dtype)
    rstd = _map("rsqrt", shifted, shape=var.shape, dtype=dtype)
    gap = _map("sub", as_dtype(source, dtype), middle, shape=source.shape, dtype=dtype)
    return gap, middle, rstd


def _normalise(source: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """((x − mean) · rstd, mean, rstd) over ``dims``."""
    gap, middle, rstd = _centre(source, dims, eps)
    return _map("mul", gap, rstd, shape=gap.shape, dtype=gap.dtype), middle, rstd


def _affine(value: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is not None:
        value = _map("mul", value, weight, shape=value.shape, dtype=value.dtype)
    if bias is not None:
        value = _map("add", value, bias, shape=value.shape, dtype=value.dtype)
    return value


def _drop(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    return reshape(value, shape)


@lowers("sum", "prod")
def _sum(call: Call) -> Value:
    source = call.tensor(0)
    single = call.op.target.endswith(".default")
    dims = tuple(range(len(source.shape))) if single else call.dims(1, len(source.shape))
    keepdim = False if single else call.flag(2, "keepdim")
    carried = _wide(call.dtype)
    total = reduce(call.op.short_name, as_dtype(source, carried), dims, carried, keepdim)
    return as_dtype(total, call.dtype)


@lowers("mean")
def _mean(call: Call) -> Value:
    source = call.tensor(0)
    single = call.op.target.endswith(".default")
    dims = tuple(range(len(source.shape))) if single else call.dims(1, len(source.shape))
    keepdim = False if single else call.flag(2, "keepdim")
    return as_dtype(mean(source, dims, _wide(call.dtype), keepdim), call.dtype)


@lowers("amax", "amin")
def _amax(call: Call) -> Value:
    source = call.tensor(0)
    dims = call.dims(1, len(source.shape))
    return reduce(call.op.short_name[1:], source, dims, source.dtype, call.flag(2, "keepdim"))


@lowers("max", "min")
def _max(call: Call) -> Value:
    kind = call.op.short_name
    source = call.tensor(0)
    overload = call.op.target.split(".")[2]
    if overload == "default":
        return reduce(kind, source, tuple(range(len(source.shape))), source.dtype, keepdim=False)
    if overload == "dim":
        rank = len(source.shape)
        dims = (call.integer(1, "dim", 0) % rank,) if rank else ()
        keepdim = call.flag(2, "keepdim")
        return (
            reduce(kind, source, dims, source.dtype, keepdim),
            reduce(f"arg{kind}", source, dims, "int64", keepdim),
        )
    return _map(kind, source, call.tensor(1), shape=call.shape, dtype=call.dtype)


@lowers("argmax", "argmin")
def _argmax(call: Call) -> Value:
    source = call.tensor(0)
    dim = call.arg(1, "dim")
    if not isinstance(dim, int):
        source = reshape(source, (source.numel,))
        return reshape(reduce(call.op.short_name, source, (0,), "int64", keepdim=False), call.shape)
    dims = (dim % len(source.shape),) if source.shape else ()
    return reduce(call.op.short_name, source, dims, "int64", call.flag(2, "keepdim"))


@lowers("any", "all")
def _any(call: Call) -> Value:
    source = call.tensor(0)
    single = call.op.target.endswith(".default")
    dims = tuple(range(len(source.shape))) if single else call.dims(1, len(source.shape))
    keepdim = False if single else call.flag(2, "keepdim")
    compute = compute_type(source.dtype)
    truth = source
    if source.dtype != "bool":
        truth = pointwise(source.shape, "bool", [source, 0], compute, lambda b, a: b.call("ne", a, "bool"))
    found = reduce(call.op.short_name, truth, dims, "bool", keepdim)
    return as_dtype(found, call.dtype)


def _correction(call: Call) -> float:
    value = call.arg(2, "correction")
    return float(value) if isinstance(value, int | float) else 1.0


@lowers("var.correction", "std.correction", "var_mean.correction")
def _var(call: Call) -> Value:
    source = call.tensor(0)
    dims = call.dims(1, len(source.shape))
    dtype = _wide(source.dtype)
    var, middle = variance(source, dims, dtype, _correction(call))
    name = call.op.short_name
    if name == "std":
        var = _map("sqrt", var, shape=var.shape, dtype=dtype)
    if name == "var_mean":
        (shape, out_dtype) = next((s.shape, s.dtype) for s in call.op.outs if s is not None)
        return tuple(as_dtype(_drop(t, shape), out_dtype) for t in (var, middle))
    return as_dtype(_drop(var, call.shape), call.dtype)


@lowers("linalg_vector_norm")
def _norm(call: Call) -> Value:
    source = call.tensor(0)
    order = call.scalar(1, "ord", 2)
    dims = call.dims(2, len(source.shape))
    dtype = _wide(call.dtype)
    source = as_dtype(source, dtype)
    if order not in (1, 2, float("inf")):
        raise Unsupported(f"aten.linalg_vector_norm of order {order}")
    size = _map("abs", source, shape=source.shape, dtype=dtype)
    if order == 2:
        size = _map("mul", source, source, shape=source.shape, dtype=dtype)
    total = reduce("max" if order == float("inf") else "sum", size, dims, dtype)
    if order == 2:
        total = _map("sqrt", total, shape=total.shape, dtype=dtype)
    return as_dtype(_drop(total, call.shape), call.dtype)


@lowers("logsumexp")
def _logsumexp(call: Call) -> Value:
    source = as_dtype(call.tensor(0), _wide(call.dtype))
    dims = call.dims(1, len(source.shape))
    dtype = source.dtype
    peak = reduce("max", source, dims, dtype)

    def finite(b: Builder, a: tuple[Expr, ...]) -> Expr:
        # An infinite peak is left out of the exponent: log Σ exp(x) is then that peak itself.
        return b.where(b.call("isinf", a, "bool"), b.const(0, dtype), a[0])

    base = pointwise(peak.shape, dtype, [peak], dtype, finite)
    gap = _map("sub", source, base, shape=source.shape, dtype=dtype)
    total = reduce("sum", _map("exp", gap, shape=gap.shape, dtype=dtype), dims, dtype)
    log = _map("log", total, shape=total.shape, dtype=dtype)
    result = _map("add", log, base, shape=total.shape, dtype=dtype)
    return as_dtype(_drop(result, call.shape), call.dtype)


@lowers("_softmax", "_log_softmax")
def _softmax(call: Call) -> Value:
    dtype = _wide(call.dtype)
    source = as_dtype(call.tensor(0), dtype)
    rank = len(source.shape)
    dims = (call.integer(1, "dim", 0) % rank,) if rank else ()
    peak = reduce("max", source, dims, dtype)
    gap = _map("sub", source, peak, shape=source.shape, dtype=dtype)
    powers = _map("exp", gap, shape=gap.shape, dtype=dtype)
    total = reduce("sum", powers, dims, dtype)
    if call.op.short_name == "_log_softmax":
        log = _map("log", total, shape=total.shape, dtype=dtype)
        return as_dtype(_map("sub", gap, log, shape=gap.shape, dtype=dtype), call.dtype)
    # One division per row instead of one per element: half a unit in the last place more error.
    scale = _map("reciprocal", total, shape=total.shape, dtype=dtype)
    return as_dtype(_map("mul", powers, scale, shape=gap.shape, dtype=dtype), call.dtype)


@lowers("native_layer_norm", "_fused_rms_norm")
def _layer_norm(call: Call) -> Value:
    source = call.tensor(0)
    normalised = call.ints(1, "normalized_shape") or ()
    rank = len(source.shape)
    dims = tuple(range(rank - len(normalised), rank))
    if call.op.short_name == "_fused_rms_norm":
        return _rms_norm(call, source, dims)
    eps = float(call.scalar(4, "eps", 1e-5))
    value, middle, rstd = _normalise(source, dims, eps)
    value = _affine(value, call.optional(2), call.optional(3))
    return _with_dtypes(call, (value, middle, rstd))


def _rms_norm(call: Call, source: Tensor, dims: tuple[int, ...]) -> Value:
    dtype = _wide(source.dtype)
    eps = call.arg(3, "eps")
    if not isinstance(eps, float):
        raise Unsupported("aten._fused_rms_norm without eps")
    wide = as_dtype(source, dtype)
    square = _map("mul", wide, wide, shape=source.shape, dtype=dtype)
    level = mean(square, dims, dtype)
    shifted = _map("add", level, eps, shape=level.shape, dtype=dtype)
    rstd = _map("rsqrt", shifted, shape=level.shape, dtype=dtype)
    value = _map("mul", wide, rstd, shape=source.shape, dtype=dtype)
    return _with_dtypes(call, (_affine(value, call.optional(2), None), rstd))


def _with_dtypes(call: Call, values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Results in the dtypes and shapes the op itself gives (an unused one as it is)."""
    results: list[Tensor] = []
    for value, spec in zip(values, call.op.outs, strict=True):
        results.append(value if spec is None else as_dtype(reshape(value, spec.shape), spec.dtype))
    return tuple(results)


@lowers("native_group_norm")
def _group_norm(call: Call) -> Value:
    source = call.tensor(0)
    groups = call.integer(6, "group", 1)
    eps = float(call.scalar(7, "eps", 1e-5))
    batch, channels, *space = source.shape
    width = channels // groups
    grouped = reshape(source, (batch, groups, width, *space))
    gap, middle, rstd = _centre(grouped, tuple(range(2, len(grouped.shape))), eps)
    per_channel = (1, groups, width, *([1] * len(space)))
    weight, bias = (
        None if t is None else reshape(t, per_channel) for t in (call.optional(1), call.optional(2))
    )
    # One factor per channel: what does not change along the pixels is computed outside of them.
    scale = rstd
    if weight is not None:
        scale = _map("mul", rstd, weight, shape=(batch, *per_channel[1:]), dtype=rstd.dtype)
    value = _map("mul", gap, scale, shape=grouped.shape, dtype=gap.dtype)
    return _with_dtypes(call, (reshape(_affine(value, None, bias), source.shape), middle, rstd))


@lowers("_native_batch_norm_legit_no_training", "native_batch_norm", "cudnn_batch_norm")
def _batch_norm(call: Call) -> Value:
    source = call.tensor(0)
    if call.op.short_name != "_native_batch_norm_legit_no_training":
        if call.flag(5, "training"):
            raise Unsupported(f"{call.op.target} in training mode updates its statistics")
        eps = float(call.scalar(7, "eps", 1e-5))
    else:
        eps = float(call.scalar(6, "eps", 1e-5))
    dtype = _wide(source.dtype)
    per_channel = (source.shape[1], *([1] * (len(source.shape) - 2)))
    middle, var = (reshape(call.tensor(p), per_channel) for p in (3, 4))
    weight, bias = (call.optional(p) for p in (1, 2))
    rstd = _map(
        "rsqrt", _map("add", var, eps, shape=per_channel, dtype=dtype), shape=per_channel, dtype=dtype
    )
    gap = _map("sub", as_dtype(source, dtype), middle, shape=source.shape, dtype=dtype)
    scale = rstd
    if weight is not None:
        scale = _map("mul", rstd, reshape(weight, per_channel), shape=per_channel, dtype=dtype)
    value = _map("mul", gap, scale, shape=source.shape, dtype=dtype)
    if bias is not None:
        value = _affine(value, None, reshape(bias, per_channel))
    if any(spec is not None and spec.numel for spec in call.op.outs[1:]):
        raise Unsupported("saved statistics of an eval-mode batch norm are used")
    nothing = tuple(full((0,), call.dtype, 0) for _ in call.op.outs[1:])
    return (as_dtype(value, call.dtype), *nothing)
