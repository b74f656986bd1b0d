"""Loop surgery: cutting at index conditions, merging what is contiguous, choosing the vector loop."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .expr import Expr
from .index import Affine, Var
from .plan import Segment, Store
from .stages import all_affines

# More boxes than this make the source long for little gain; the rest stays a per-element choice.
_MAX_BOXES = 12
_FEW_VALUES = 4


def segment_boxes(loops: list[Var], bodies: Iterable[Expr]) -> list[list[Var]]:
    """Cut the loops where conditions like ``i < 64`` change, so that inside a box they are constants."""
    cuts: dict[str, set[int]] = {}
    ranges = {v.name: v for v in loops}
    for body in bodies:
        for node in body.walk():
            if node.op == "less":
                for name, point in _thresholds(*node.attr):
                    if name in ranges:
                        cuts.setdefault(name, set()).add(point)
    pieces: list[list[Var]] = []
    boxes = 1
    for var in loops:
        points = sorted(p for p in cuts.get(var.name, ()) if var.lo < p < var.hi)
        if boxes * (len(points) + 1) > _MAX_BOXES:
            points = []
        boxes *= len(points) + 1
        edges = [var.lo, *points, var.hi]
        pieces.append([Var(var.name, a, b) for a, b in itertools.pairwise(edges)])
    return [list(box) for box in itertools.product(*pieces)]


def _thresholds(affine: Affine, bound: int) -> Iterator[tuple[str, int]]:
    """(variable, value from which ``affine < bound`` may differ), for conditions on one variable."""
    names = {v.name: v for v in affine.variables()}
    if len(names) != 1:
        return
    (var,) = names.values()
    if not affine.is_plain:
        # A pattern that repeats (every third element): one box per value while they are few.
        if var.extent <= _FEW_VALUES:
            yield from ((var.name, k) for k in range(var.lo + 1, var.hi))
        return
    (_, coef), room = affine.terms[0], bound - affine.const
    if coef > 0:
        yield var.name, -(-room // coef)
    else:
        yield var.name, (-room) // (-coef) + 1


def merge_loops(segments: list[Segment], rows: list[Var]) -> list[Var]:
    """Fuse neighbouring loops that every access walks as one. Rewrites the segments; returns the rows.

    Neighbouring rows are merged when all segments agree (their order is the row number); inner loops
    segment by segment.
    """
    changed = True
    while changed:
        changed = False
        for outer, inner in itertools.pairwise(rows):
            if all(_walks_as_one(a, outer, inner) for s in segments for a in _affines(s)):
                fused = Var(outer.name, outer.lo * inner.extent, outer.hi * inner.extent)
                for segment in segments:
                    _rewrite(segment, outer, inner, fused)
                rows = [fused if v is outer else v for v in rows if v is not inner]
                changed = True
                break
    for segment in segments:
        segment.loops = [v for v in segment.loops if v.extent > 1]
        changed = True
        while changed:
            changed = False
            for outer, inner in _pairs(segment.loops):
                if all(_walks_as_one(a, outer, inner) for a in _affines(segment)):
                    fused = Var(outer.name, outer.lo * inner.extent, outer.hi * inner.extent)
                    _rewrite(segment, outer, inner, fused)
                    segment.loops = [fused if v is outer else v for v in segment.loops if v is not inner]
                    changed = True
                    break
    return rows


def _pairs(loops: list[Var]) -> Iterator[tuple[Var, Var]]:
    for outer, inner in itertools.permutations(loops, 2):
        if inner.lo == 0:
            yield outer, inner


def _affines(segment: Segment) -> Iterator[Affine]:
    for acc in segment.accumulates:
        yield from all_affines(acc.value)
        if acc.reduce.kind.startswith("arg"):
            yield acc.place
    for store in segment.stores:
        yield store.address
        yield from all_affines(store.value)


def _walks_as_one(a: Affine, outer: Var, inner: Var) -> bool:
    if any(
        v.name in (outer.name, inner.name)
        for atom, _ in a.terms
        if not isinstance(atom, Var)
        for v in atom.of.variables()
    ):
        return False
    return a.coefficient(outer.name) == a.coefficient(inner.name) * inner.extent


def _rewrite(segment: Segment, outer: Var, inner: Var, fused: Var) -> None:
    """outer·E + inner → fused in every index of the segment."""
    memo: dict[int, Expr] = {}

    def index(a: Affine) -> Affine:
        coef = a.coefficient(inner.name)
        terms = tuple(
            (atom, c)
            for atom, c in a.terms
            if not (isinstance(atom, Var) and atom.name in (outer.name, inner.name))
        )
        return Affine(terms, a.const) + (Affine(((fused, 1),)) * coef)

    def visit(node: Expr) -> Expr:
        found = memo.get(id(node))
        if found is None:
            attr = node.attr
            if node.op == "load":
                attr = (attr[0], index(attr[1]))
            elif node.op == "less":
                attr = (index(attr[0]), attr[1])
            elif node.op == "index":
                attr = index(attr)
            args = tuple(visit(x) for x in node.args)
            same = attr == node.attr and all(x is y for x, y in zip(args, node.args, strict=True))
            found = memo[id(node)] = node if same else Expr(node.op, args, node.dtype, attr)
        return found

    segment.accumulates = [
        replace(a, value=visit(a.value), place=index(a.place) if a.reduce.kind.startswith("arg") else a.place)
        for a in segment.accumulates
    ]
    segment.stores = [Store(s.buffer, index(s.address), s.dtype, visit(s.value)) for s in segment.stores]


def stride_one_votes(segment: Segment) -> dict[str, int]:
    """How many accesses run contiguously along each variable; a store counts double."""
    votes: dict[str, int] = {}

    def vote(address: Affine, weight: int) -> None:
        for atom, coef in address.terms:
            if isinstance(atom, Var) and coef == 1:
                votes[atom.name] = votes.get(atom.name, 0) + weight

    for body in _bodies(segment):
        for node in body.walk():
            if node.op == "load":
                vote(node.attr[1], 1)
    for store in segment.stores:
        vote(store.address, 2)
    return votes


def _bodies(segment: Segment) -> Iterator[Expr]:
    yield from (a.value for a in segment.accumulates)
    yield from (s.value for s in segment.stores)


def choose_innermost(segment: Segment) -> Var | None:
    """The loop that most accesses walk contiguously; among equals the longest."""
    votes = stride_one_votes(segment)
    return max(segment.loops, key=lambda v: (votes.get(v.name, 0), v.extent), default=None)


def order_loops(segment: Segment, innermost: Var | None) -> None:
    """Slowest stride outermost (by the store, or the first load), the vector loop innermost."""
    if innermost is None:
        return
    guide = segment.stores[0].address if segment.stores else _first_load(segment)
    rest = [v for v in segment.loops if v is not innermost]
    if guide is not None:
        rest.sort(key=lambda v: -abs(guide.coefficient(v.name)))
    segment.loops = [*rest, innermost]


def _first_load(segment: Segment) -> Affine | None:
    for body in _bodies(segment):
        for node in body.walk():
            if node.op == "load" and node.attr[1].terms:
                address: Affine = node.attr[1]
                return address
    return None
