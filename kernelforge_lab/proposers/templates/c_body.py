"""The statements of one segment: named values at their depth, folds and stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .c_expr import C_TYPE, affine_text, expr_text
from .c_lines import Lines
from .c_reduce import Accumulator
from .expr import Expr, compute_type
from .index import Affine, Var
from .placement import place
from .plan import Segment
from .tensor import Reduce

# Longer expressions get a name: lines stay readable.
_MAX_INLINE = 90


@dataclass(frozen=True)
class Scope:
    """What names mean around a segment.

    ``dtypes`` of the buffers as stored, ``row_names`` of reductions, ``kept`` row buffers, the ``lane``
    loop if there is one, and ``numbers``: the counter that makes value names unique in the source.
    ``loads`` and ``targets`` replace the text of single accesses (vector registers, values a thread
    keeps); ``flat`` says that all inner loops are walked as one.
    """

    dtypes: Mapping[str, str]
    row_names: Mapping[Reduce, str]
    kept: Sequence[str]
    lane: Var | None
    numbers: Iterator[int]
    loads: Mapping[tuple[str, Affine], str] = field(default_factory=dict)
    targets: Mapping[tuple[str, Affine], str] = field(default_factory=dict)
    flat: bool = False


class Body:
    """Texts of a segment's expressions, named where they are computed."""

    def __init__(self, lines: Lines, segment: Segment, scope: Scope) -> None:
        roots = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
        self._lines = lines
        self._segment = segment
        self._scope = scope
        self._lane = scope.lane
        self._place = place(roots, segment.loops, scope.lane.name if scope.lane else None, flat=scope.flat)
        self._texts: dict[int, str] = {}

    def has_lets(self, depth: int) -> bool:
        return bool(self._place.lets[depth] or self._place.lane_lets[depth])

    def lets(self, depth: int) -> None:
        """Name what belongs to this depth."""
        for node in self._place.lets[depth]:
            text = self._node(node)
            name = self._name()
            self._lines.add(f"const {C_TYPE[node.dtype]} {name} = {text};")
            self._texts[id(node)] = name

    def lane_lets(self, depth: int) -> None:
        """The same for values that differ per lane: arrays filled by one vector loop."""
        nodes = self._place.lane_lets[depth]
        if not nodes or self._lane is None:
            return
        names = [self._name() for _ in nodes]
        for node, name in zip(nodes, names, strict=True):
            self._lines.add(f"{C_TYPE[node.dtype]} {name}[lanes];")
        self._lines.pragma("simd")
        with self._lines.block("for (int t = 0; t < width; ++t)"):
            self._lines.add(f"const long {self._lane.name} = base + t;")
            for node, name in zip(nodes, names, strict=True):
                self._lines.add(f"{name}[t] = {self._node(node)};")
                self._texts[id(node)] = f"{name}[t]"

    def statements(self, accumulators: Mapping[Reduce, Accumulator], at: str = "") -> None:
        """Fold and store one element, at the innermost place."""
        for acc in self._segment.accumulates:
            value = self._short(acc.value)
            self._lines.add(*accumulators[acc.reduce].fold(value, f"({affine_text(acc.place)})", at))
        for store in self._segment.stores:
            value = self.use(store.value)
            if store.value.dtype != store.dtype and store.dtype in C_TYPE:
                value = f"{C_TYPE[store.dtype]}({value})"
            target = self._scope.targets.get((store.buffer, store.address))
            target = target or f"{store.buffer}[{self._address(store.buffer, store.address)}]"
            self._lines.add(f"{target} = {value};")

    def use(self, node: Expr) -> str:
        return self._texts.get(id(node)) or self._node(node)

    def _short(self, node: Expr) -> str:
        """A name or literal: folds mention the value more than once."""
        text = self.use(node)
        if text.isidentifier():
            return text
        name = self._name()
        self._lines.add(f"const {C_TYPE[node.dtype]} {name} = {text};")
        return name

    def _node(self, node: Expr) -> str:
        if node.op == "load":
            buffer, address = node.attr
            text = self._scope.loads.get((buffer, address)) or f"{buffer}[{self._address(buffer, address)}]"
            stored = self._scope.dtypes.get(buffer, node.dtype)
            return text if compute_type(stored) == stored == node.dtype else f"{C_TYPE[node.dtype]}({text})"
        if node.op == "row":
            name = self._scope.row_names[node.attr[0]]
            return f"{name}[t]" if self._lane is not None else name
        return expr_text(node, self._inline)

    def _inline(self, node: Expr) -> str:
        text = self.use(node)
        return text if len(text) <= _MAX_INLINE else f"({text})" if not text.startswith("(") else text

    def _address(self, buffer: str, address: Affine) -> str:
        text = affine_text(address)
        if self._lane is not None and buffer in self._scope.kept:
            return f"({text}) * lanes + t"
        return text

    def _name(self) -> str:
        return f"v{next(self._scope.numbers)}"
