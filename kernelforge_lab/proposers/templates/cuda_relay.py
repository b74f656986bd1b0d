"""CUDA kernels over few long rows: resident blocks that take each row from its statistics to its result.

Statistics need a row read before its result can be written, and rows together exceed L2: with a kernel
per sweep every element comes from memory twice. Here the blocks stay. TEAMS rows are under way at once,
each shared by the blocks of a team; they take its statistics, wait for each other by a counter, and
write the result while the row is still in L2. Teams drift apart, so that one's waiting is another's work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .c_lines import Lines
from .cuda_access import Access, Vector, common_vector, decode
from .cuda_rows import extent_of, float_sums, leave, meet, sweep
from .lowering import Unsupported
from .plan import Nest, Segment

if TYPE_CHECKING:
    from .cuda import CudaPrinter

# All blocks must be on the device at once: two or three of 512 threads on each of 132 processors.
_PROCESSORS = 132
_BLOCKS = (264, 396)
_BLOCK = 512
# Rows under way: together they should fill L2 about half.
_L2_SHARE_BYTES = 32 << 20
_LEAST_PER_ROW = 1 << 17
_MOST_ROWS = 1024


class RelayRows:
    def __init__(self, printer: CudaPrinter, nest: Nest) -> None:
        float_sums(printer, nest)
        self._printer = printer
        self._nest = nest
        sweeps = [p for p in nest.passes if p.segments[0].loops]
        if len(sweeps) != 2 or sweeps[0] is not nest.passes[0] or sweeps[1].finished:
            raise Unsupported("rows are relayed from one sweep of statistics to one of results")
        self._first, self._second = sweeps
        self._aside = [p for p in nest.passes[1:] if p is not self._second]
        if extent_of(self._first.segments[0]) < _LEAST_PER_ROW or nest.row_count > _MOST_ROWS:
            raise Unsupported("rows too short or too many to be relayed")

    def print(self) -> None:
        printer, nest, index = self._printer, self._nest, self._printer.index
        rows = nest.row_count
        printer.workspaces["arrived"] = ("int32", str(rows))
        zero = Lines()
        zero.add(f"if (threadIdx.x < {rows}) arrived[threadIdx.x] = 0;")
        printer.kernel(zero, "1", str(_MOST_ROWS), str(_MOST_ROWS))
        teams = printer.tune("TEAMS", self._team_counts())
        blocks, block, parts = printer.tune("BLOCKS", list(_BLOCKS)), str(_BLOCK), "parts"
        vectors = [
            common_vector(printer, [Access(printer, p.segments[0])]) for p in (self._first, self._second)
        ]
        lines = Lines()
        lines.add(f"constexpr int parts = {blocks} / {teams};")
        lines.add("const int team = blockIdx.x / parts, part = blockIdx.x % parts;")
        lines.add(f"if (team >= {teams}) return;")
        with lines.block(f"for ({index} row = team; row < {rows}; row += {teams})"):
            decode(lines, nest.rows, "row", index)
            with lines.block():
                self._bounds(lines, self._first.segments[0], vectors[0])
                walk = ("part * chunk", "end", block, vectors[0])
                sweep(printer, lines, self._first, walk, last=False)
                for reduce in self._first.finished:
                    size = f"{rows} * ({blocks} / {teams})"
                    leave(printer, lines, self._first, reduce, (block, "row * parts + part", size))
            lines.add("kf::arrive(arrived + row);", "kf::await(arrived + row, parts);")
            meet(printer, lines, self._first, parts, "row * parts")
            for made in self._aside:
                with lines.block("if (part == 0 && threadIdx.x == 0)"):
                    segment = made.segments[0]
                    Access(printer, segment).elements(lines, segment, ("0", Vector()), {}, {})
            self._bounds(lines, self._second.segments[0], vectors[1])
            walk = ("part * chunk", "end", block, vectors[1])
            sweep(printer, lines, self._second, walk, last=True)
        printer.kernel(lines, blocks, block, f"{block}, {blocks} / {_PROCESSORS}")

    def _team_counts(self) -> list[int]:
        rows = self._nest.row_count
        row_bytes = extent_of(self._first.segments[0]) * 2
        best = max(1, _L2_SHARE_BYTES // row_bytes)
        return list(dict.fromkeys(min(rows, n) for n in (best, 2 * best, max(1, best // 2))))

    def _bounds(self, lines: Lines, segment: Segment, vector: Vector) -> None:
        extent, vec, index = extent_of(segment), vector.text, self._printer.index
        lines.add(f"constexpr {index} chunk = (({extent} + parts - 1) / parts + {vec} - 1) / {vec} * {vec};")
        lines.add(f"const {index} end = kf::min<{index}>((part + 1) * chunk, {extent});")
