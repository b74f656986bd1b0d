"""Lowerings of ops that only move elements: views, copies, cat, pad, flips, nearest upsampling."""

from __future__ import annotations

from .index import Affine, constant, floordiv, modulo
from .lowering import Call, Unsupported, Value, as_dtype, lowers
from .tensor import Choice, Index, Tensor, View, broadcast, full, reshape


@lowers("view", "_unsafe_view", "reshape")
def _reshape(call: Call) -> Value:
    if call.op.target == "aten.view.dtype":
        raise Unsupported("aten.view.dtype reinterprets bytes")
    return reshape(call.tensor(0), call.shape)


@lowers("alias", "detach", "clone", "lift_fresh_copy", "contiguous", "positive")
def _same(call: Call) -> Value:
    return as_dtype(call.tensor(0), call.dtype)


@lowers("expand")
def _expand(call: Call) -> Value:
    return broadcast(call.tensor(0), call.shape)


@lowers("copy")
def _copy(call: Call) -> Value:
    return broadcast(as_dtype(call.tensor(1), call.dtype), call.shape)


@lowers("permute", "transpose", "t", "numpy_T")
def _permute(call: Call) -> Value:
    source = call.tensor(0)
    rank = len(source.shape)
    name = call.op.short_name
    order = list(range(rank))
    if name == "permute":
        order = [d % rank for d in call.ints(1, "dims") or ()]
    elif rank:
        a, b = (0, rank - 1) if name == "t" else (call.integer(1, "dim0", 0), call.integer(2, "dim1", 1))
        order[a % rank], order[b % rank] = order[b % rank], order[a % rank]
    places = [order.index(d) for d in range(rank)]
    return View(call.shape, source.dtype, source, lambda i: tuple(i[p] for p in places))


@lowers("unsqueeze")
def _unsqueeze(call: Call) -> Value:
    source = call.tensor(0)
    dim = call.integer(1, "dim", 0) % (len(source.shape) + 1)
    return View(call.shape, source.dtype, source, lambda i: (*i[:dim], *i[dim + 1 :]))


@lowers("squeeze")
def _squeeze(call: Call) -> Value:
    source = call.tensor(0)
    rank = len(source.shape)
    wanted = call.ints(1, "dim")
    dims = range(rank) if wanted is None else [d % max(rank, 1) for d in wanted]
    gone = [rank > d and d in dims and source.shape[d] == 1 for d in range(rank)]

    def index(i: Index) -> Index:
        rest = iter(i)
        return tuple(Affine(()) if dropped else next(rest) for dropped in gone)

    return View(call.shape, source.dtype, source, index)


def _at(source: Tensor, shape: tuple[int, ...], dim: int, start: int, step: int = 1) -> Tensor:
    """Elements start, start + step, … along ``dim``."""
    return View(
        shape,
        source.dtype,
        source,
        lambda i: (*i[:dim], i[dim] * step + start, *i[dim + 1 :]),
    )


@lowers("slice", "narrow")
def _slice(call: Call) -> Value:
    source = call.tensor(0)
    dim = call.integer(1, "dim", 0) % len(source.shape)
    size = source.shape[dim]
    first = call.arg(2, "start")
    start = first if isinstance(first, int) else 0
    start = max(0, min(start + size if start < 0 else start, size))
    step = 1 if call.op.short_name == "narrow" else call.integer(4, "step", 1)
    return _at(source, call.shape, dim, start, step)


@lowers("select")
def _select(call: Call) -> Value:
    source = call.tensor(0)
    dim = call.integer(1, "dim", 0) % len(source.shape)
    at = constant(call.integer(2, "index", 0) % source.shape[dim])
    return View(call.shape, source.dtype, source, lambda i: (*i[:dim], at, *i[dim:]))


@lowers("split", "split_with_sizes", "chunk", "unbind")
def _split(call: Call) -> Value:
    source = call.tensor(0)
    name = call.op.short_name
    place = 1 if name == "unbind" else 2
    dim = call.integer(place, "dim", 0) % len(source.shape)
    pieces: list[Tensor] = []
    start = 0
    for spec in call.op.outs:
        if name == "unbind":
            at = constant(start)
            shape = (*source.shape[:dim], *source.shape[dim + 1 :])
            pieces.append(
                View(shape, source.dtype, source, lambda i, at=at: (*i[:dim], at, *i[dim:]))  # type: ignore[misc]
            )
            start += 1
            continue
        size = spec.shape[dim] if spec is not None else _split_size(call, len(pieces), dim, start)
        shape = (*source.shape[:dim], size, *source.shape[dim + 1 :])
        pieces.append(_at(source, shape, dim, start))
        start += size
    return tuple(pieces)


def _split_size(call: Call, piece: int, dim: int, start: int) -> int:
    sizes = call.ints(1, "split_size") or ()
    if call.op.short_name == "split_with_sizes":
        return sizes[piece]
    return min(sizes[0], call.tensor(0).shape[dim] - start)


@lowers("diagonal")
def _diagonal(call: Call) -> Value:
    source = call.tensor(0)
    rank = len(source.shape)
    offset = call.integer(1, "offset", 0)
    a, b = call.integer(2, "dim1", 0) % rank, call.integer(3, "dim2", 1) % rank

    def index(i: Index) -> Index:
        rest = iter(i[:-1])
        along = i[-1]
        return tuple(
            along + max(-offset, 0) if d == a else along + max(offset, 0) if d == b else next(rest)
            for d in range(rank)
        )

    return View(call.shape, source.dtype, source, index)


@lowers("flip")
def _flip(call: Call) -> Value:
    source = call.tensor(0)
    rank = len(source.shape)
    dims = {d % rank for d in call.ints(1, "dims") or ()}

    def index(i: Index) -> Index:
        return tuple(c * -1 + (source.shape[d] - 1) if d in dims else c for d, c in enumerate(i))

    return View(call.shape, source.dtype, source, index)


@lowers("repeat")
def _repeat(call: Call) -> Value:
    source = call.tensor(0)
    missing = len(call.shape) - len(source.shape)
    return View(
        call.shape,
        source.dtype,
        source,
        lambda i: tuple(modulo(c, n) for c, n in zip(i[missing:], source.shape, strict=True)),
    )


@lowers("cat")
def _cat(call: Call) -> Value:
    # ATen skips legacy empty tensors of shape (0,) whatever the others' rank.
    rank = len(call.shape)
    parts = [p for p in call.tensors(0) if len(p.shape) == rank]
    dim = call.integer(1, "dim", 0) % rank
    parts = [as_dtype(p, call.dtype) for p in parts if p.shape[dim]]
    return _join(parts, dim, call.shape)


@lowers("stack")
def _stack(call: Call) -> Value:
    parts = call.tensors(0)
    dim = call.integer(1, "dim", 0) % len(call.shape)
    ones = [
        View(
            (*p.shape[:dim], 1, *p.shape[dim:]),
            call.dtype,
            as_dtype(p, call.dtype),
            lambda i: (*i[:dim], *i[dim + 1 :]),
        )
        for p in parts
    ]
    return _join(list(ones), dim, call.shape)


def _join(parts: list[Tensor], dim: int, shape: tuple[int, ...]) -> Tensor:
    """Balanced choice between the parts along ``dim``: depth log₂ of their number."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left_size = sum(p.shape[dim] for p in parts[:half])
    right_size = sum(p.shape[dim] for p in parts[half:])

    def sized(n: int) -> tuple[int, ...]:
        return (*shape[:dim], n, *shape[dim + 1 :])

    left = _join(parts[:half], dim, sized(left_size))
    right = _join(parts[half:], dim, sized(right_size))
    return Choice(
        shape,
        parts[0].dtype,
        lambda i: i[dim],
        left_size,
        left,
        lambda i: i,
        right,
        lambda i: (*i[:dim], i[dim] - left_size, *i[dim + 1 :]),
    )


@lowers("constant_pad_nd")
def _pad(call: Call) -> Value:
    source = call.tensor(0)
    pads = call.ints(1, "pad") or ()
    value = call.scalar(2, "value", 0)
    result = source
    rank = len(source.shape)
    for k in range(len(pads) // 2):
        dim, before, after = rank - 1 - k, pads[2 * k], pads[2 * k + 1]
        if before < 0 or after < 0:
            shape = list(result.shape)
            shape[dim] += min(before, 0) + min(after, 0)
            result = _at(result, tuple(shape), dim, max(-before, 0))
        for size, first in ((max(before, 0), True), (max(after, 0), False)):
            if not size:
                continue
            shape = list(result.shape)
            shape[dim] = size
            border = full(tuple(shape), call.dtype, value)
            shape[dim] += result.shape[dim]
            result = _join([border, result] if first else [result, border], dim, tuple(shape))
    return result


@lowers("slice_scatter")
def _slice_scatter(call: Call) -> Value:
    base, source = call.tensor(0), as_dtype(call.tensor(1), call.dtype)
    dim = call.integer(2, "dim", 0) % len(base.shape)
    size = base.shape[dim]
    step = call.integer(5, "step", 1)
    first = call.arg(3, "start")
    start = first if isinstance(first, int) else 0
    start = max(0, min(start + size if start < 0 else start, size))
    if step == 1:
        return _overwrite(base, source, dim, start)
    end = start + (source.shape[dim] - 1) * step + 1
    inside = Choice(
        (*base.shape[:dim], end - start, *base.shape[dim + 1 :]),
        call.dtype,
        lambda i: modulo(i[dim], step),
        1,
        source,
        lambda i: (*i[:dim], floordiv(i[dim], step), *i[dim + 1 :]),
        base,
        lambda i: (*i[:dim], i[dim] + start, *i[dim + 1 :]),
    )
    return _overwrite(base, inside, dim, start)


@lowers("select_scatter")
def _select_scatter(call: Call) -> Value:
    base, source = call.tensor(0), as_dtype(call.tensor(1), call.dtype)
    dim = call.integer(2, "dim", 0) % len(base.shape)
    at = call.integer(3, "index", 0) % base.shape[dim]
    piece = View(
        (*base.shape[:dim], 1, *base.shape[dim + 1 :]),
        call.dtype,
        source,
        lambda i: (*i[:dim], *i[dim + 1 :]),
    )
    return _overwrite(base, piece, dim, at)


def _overwrite(base: Tensor, piece: Tensor, dim: int, start: int) -> Tensor:
    """``base`` with ``piece`` written from ``start`` along ``dim``."""
    size, width = base.shape[dim], piece.shape[dim]

    def part(begin: int, end: int) -> Tensor:
        return _at(base, (*base.shape[:dim], end - begin, *base.shape[dim + 1 :]), dim, begin)

    parts = [part(0, start)] if start else []
    parts.append(piece)
    if start + width < size:
        parts.append(part(start + width, size))
    return _join(parts, dim, base.shape)


@lowers("upsample_nearest2d")
def _nearest(call: Call) -> Value:
    source = call.tensor(0)
    (h_in, w_in), (h, w) = source.shape[-2:], call.shape[-2:]
    if h % h_in or w % w_in:
        raise Unsupported("aten.upsample_nearest2d by a factor that is not whole")
    return View(
        call.shape,
        source.dtype,
        source,
        lambda i: (*i[:-2], floordiv(i[-2], h // h_in), floordiv(i[-1], w // w_in)),
    )
