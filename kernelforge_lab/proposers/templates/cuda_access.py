"""How a thread touches memory: which accesses of a segment can be 16 bytes wide, and their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...kernels.spec import itemsize_bytes
from .c_body import Body, Scope
from .c_expr import affine_text
from .c_lines import Lines
from .c_reduce import Accumulator
from .index import Affine, Var
from .plan import Plan, Segment
from .stages import all_affines
from .tensor import Reduce

if TYPE_CHECKING:
    from .cuda import CudaPrinter

_WIDEST_BYTES = 16

Place = tuple[str, Affine]


@dataclass(frozen=True)
class Vector:
    """Elements a thread takes at once: a tune name with its ``widths``, or ``1`` without."""

    text: str = "1"
    widths: tuple[int, ...] = ()


@dataclass(frozen=True)
class Kept:
    """Loaded vectors that a block keeps in shared memory, by place; the first sweep writes them.

    The element's number within the block is ``local``; those from ``cap`` on are loaded again.
    """

    names: Mapping[Place, str]
    writes: bool

    def load(self, number: int, place: Place, load: str, vec: str) -> list[str]:
        name = self.names.get(place)
        if name is None or self.writes:
            keep = [] if name is None else [f"if (local < cap) {name}[local / {vec}] = p{number};"]
            return [f"const auto p{number} = {load};", *keep]
        return [f"const auto p{number} = local < cap ? {name}[local / {vec}] : {load};"]


def common_vector(printer: CudaPrinter, accesses: Sequence[Access]) -> Vector:
    """The widths that every segment allows and some segment gains by."""
    offered = sorted({n for a in accesses for n in a.offers}, reverse=True)
    widths = [n for n in offered if all(a.allows(n) for a in accesses)][:2]
    return Vector(printer.tune("VEC", widths), tuple(widths)) if widths else Vector()


class Access:
    """The loads and stores of one segment, seen along its innermost loop.

    ``offers`` are the vector widths worth having here, best first (empty when nothing is wide).
    """

    def __init__(self, printer: CudaPrinter, segment: Segment) -> None:
        self._printer = printer
        self._inner = segment.loops[-1] if segment.loops else None
        self._loads: list[Place] = []
        self._stores: list[Place] = []
        if self._inner is None:
            self.offers: list[int] = []
            return
        seen: set[Place] = set()
        values = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
        for node in (n for value in values for n in value.walk() if n.op == "load"):
            if node.attr not in seen and node.attr[0] in printer.dtypes:
                seen.add(node.attr)
                self._loads.append(node.attr)
        self._stores = [(s.buffer, s.address) for s in segment.stores if s.buffer in printer.dtypes]
        self.offers = self._offers()

    def _offers(self) -> list[int]:
        wide = [p for p in (*self._loads, *self._stores) if self._fits(p, 2)]
        if not wide:
            return []
        narrowest = min(itemsize_bytes(self._printer.dtypes[b]) for b, _ in wide)
        best = _WIDEST_BYTES // narrowest
        offers = [n for n in (best, best // 2) if n > 1 and any(self._fits(p, n) for p in wide)]
        while not offers and best > 2:
            best //= 2
            offers = [best] if any(self._fits(p, best) for p in wide) else []
        return offers

    def allows(self, width: int) -> bool:
        """A thread can take ``width`` neighbouring elements, whether or not its accesses are wide."""
        inner = self._inner
        return inner is None or (inner.extent % width == 0 and inner.lo % width == 0)

    def _fits(self, place: Place, width: int) -> bool:
        """Consecutive elements along the inner loop, at an address that is a multiple of the width."""
        buffer, address = place
        inner = self._inner
        if inner is None or not self.allows(width) or not address.is_plain:
            return False
        if address.coefficient(inner.name) != 1 or address.const % width:
            return False
        names = self._printer.region
        spec = dict(zip(names.input_names, names.inputs, strict=True)) | dict(
            zip(names.output_names, names.outputs, strict=True)
        )
        if spec[buffer].offset % width:
            return False
        return all(
            c % width == 0 for a, c in address.terms if not (isinstance(a, Var) and a.name == inner.name)
        )

    def wide_loads(self, vector: Vector) -> list[Place]:
        return [p for p in self._loads if self._wide(p, vector)]

    def _wide(self, place: Place, vector: Vector) -> bool:
        return all(self._fits(place, n) for n in vector.widths)

    def scope(self, loads: Mapping[Place, str], targets: Mapping[Place, str], *, flat: bool = True) -> Scope:
        printer = self._printer
        return Scope(printer.stored, printer.plan.row_names, [], None, printer.numbers, loads, targets, flat)

    def elements(
        self,
        lines: Lines,
        segment: Segment,
        at: tuple[str, Vector],
        loads: Mapping[Place, str],
        targets: Mapping[Place, str],
        *,
        accumulators: Mapping[Reduce, Accumulator] | None = None,
        last: bool = True,
        kept: Kept | None = None,
    ) -> None:
        """The vector of elements ``at`` (a flat number of the segment's loops, its width).

        ``loads`` and ``targets`` name places that are not memory (values a thread keeps); they may use
        ``v``, the element of the vector.
        """
        number, vector = at
        inner = self._inner
        found: Mapping[Reduce, Accumulator] = accumulators or {}
        if inner is None:
            body = Body(lines, segment, self.scope(loads, targets))
            body.lets(0)
            body.statements(found)
            return
        vec = vector.text
        types = self._printer.element_types()
        start = Var(f"{inner.name}v", inner.lo, inner.hi)
        if not vector.widths:
            decode(lines, segment.loops, number, self._printer.index)
            body = Body(lines, segment, self.scope(loads, targets))
            body.lets(0)
            body.lets(1)
            body.statements(found)
            return
        decode(lines, [*segment.loops[:-1], start], number, self._printer.index)
        first = {inner.name: start}
        wide_loads = [p for p in self._loads if self._wide(p, vector) and p not in loads]
        wide_stores = [p for p in self._stores if self._wide(p, vector)]
        # What changes with every loop of the segment is met once; the rest (weights) is met again.
        once = "_once" if self._printer.strategy.stream and last else ""
        names = {v.name for v in segment.loops}
        texts = dict(loads)
        for k, (buffer, address) in enumerate(wide_loads):
            how = once if names <= {v.name for v in address.variables()} else ""
            load = f"kf::load{how}<{vec}>({buffer} + ({_at(address, first)}))"
            lines.add(*kept.load(k, (buffer, address), load, vec) if kept else [f"const auto p{k} = {load};"])
            texts[buffer, address] = f"p{k}[v]"
        puts = dict(targets)
        for k, (buffer, address) in enumerate(wide_stores):
            narrow = self._printer.dtypes[buffer] in ("bfloat16", "float16")
            kind = "float q{}[{}]" if narrow else f"kf::Vec<{types[buffer]}, {{1}}> q{{0}}"
            lines.add(f"{kind.format(k, vec)};")
            puts[buffer, address] = f"q{k}[v]"
        body = Body(lines, segment, self.scope(texts, puts))
        body.lets(0)
        lines.add("#pragma unroll")
        with lines.block(f"for (int v = 0; v < {vec}; ++v)"):
            lines.add(f"const {self._printer.index} {inner.name} = {start.name} + v;")
            body.lets(1)
            body.statements(found)
        for k, (buffer, address) in enumerate(wide_stores):
            lines.add(f"kf::store{once}({buffer} + ({_at(address, first)}), q{k});")


def flat_address(address: Affine, loops: Sequence[Var]) -> tuple[object, ...] | None:
    """The address as a function of the loops' flat number, comparable between segments.

    None when it does not walk with that number: two segments whose loops are merged differently still
    meet an element under the same number when their flat addresses are equal.
    """
    step = None
    for var in reversed(loops):
        coef = address.coefficient(var.name)
        if var.lo or (step is not None and coef != step):
            return None
        step = coef * var.extent
    names = {v.name for v in loops}
    if not address.is_plain or not loops:
        return None
    rest = tuple((a, c) for a, c in address.terms if isinstance(a, Var) and a.name not in names)
    return (rest, address.const, address.coefficient(loops[-1].name))


def _at(address: Affine, rename: Mapping[str, Var]) -> str:
    terms = tuple((rename.get(a.name, a) if isinstance(a, Var) else a, c) for a, c in address.terms)
    return affine_text(Affine(terms, address.const))


def index_type(plan: Plan) -> str:
    """``int`` while every address fits, else 64 bits."""
    for nest in plan.nests:
        for segment in (s for p in nest.passes for s in p.segments):
            total = 1
            for var in (*nest.rows, *segment.loops):
                total *= var.extent
            bodies = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
            addresses = [s.address for s in segment.stores] + [a for b in bodies for a in all_affines(b)]
            # Room for the last block's overshoot.
            if total > 2**31 - 2**24 or any(max(map(abs, a.bounds())) > 2**31 - 2**24 for a in addresses):
                return "int64_t"
    return "int"


def decode(lines: Lines, loops: list[Var], number: str, kind: str) -> None:
    """``const`` variables of a flat number, fastest last."""
    step = 1
    texts: list[str] = []
    for var in reversed(loops):
        quotient = number if step == 1 else f"{number} / {step}"
        whole = var is loops[0]
        value = (
            quotient if whole else f"({quotient}) % {var.extent}" if step > 1 else f"{number} % {var.extent}"
        )
        texts.append(f"const {kind} {var.name} = {value}{f' + {var.lo}' if var.lo else ''};")
        step *= var.extent
    lines.add(*reversed(texts))
