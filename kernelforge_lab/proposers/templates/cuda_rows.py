"""CUDA kernels over rows: a team of threads per row, or several blocks per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .c_lines import Lines
from .c_reduce import Accumulator
from .cuda_access import Access, Kept, Place, Vector, common_vector, decode, flat_address
from .lowering import Unsupported
from .plan import Nest, Pass, Segment
from .tensor import Reduce

if TYPE_CHECKING:
    from .cuda import CudaPrinter

# Threads per row on offer. Up to a warp several rows share a block and meet in shuffles.
_TEAMS = (8, 16, 32, 128, 256, 512, 1024)
# Values a thread keeps of its row: more would spill.
_KEPT_PER_THREAD = 64
# Elements of a row per thread from which a larger team is not worth its synchronisation.
_LEAST_PER_THREAD = 4
_COMFORTABLE = 16
_READ_PER_THREAD = 256
_TEAM_OFFERS = 4
_MAX_UNROLL = 16
# Elements of a row per block below which blocks spend their time starting.
_LEAST_PER_BLOCK = 2048
_SPLIT_BLOCKS = (528, 1056, 264, 2112)
_OPERATION = {"sum": "Sum", "prod": "Product", "max": "Max", "min": "Min", "any": "Or", "all": "And"}


def extent_of(segment: Segment) -> int:
    total = 1
    for var in segment.loops:
        total *= var.extent
    return total


class TeamRows:
    """One team of TEAM threads per row; what a row keeps between passes stays in registers."""

    def __init__(self, printer: CudaPrinter, nest: Nest) -> None:
        self._printer = printer
        self._nest = nest
        self._longest = max((extent_of(s) for p in nest.passes for s in p.segments), default=1)
        self._lines = Lines()
        self._kept = {b.name for b in nest.buffers}
        if any(b.dtype != "float32" for b in nest.buffers):
            raise Unsupported("only float rows are kept in registers")

    def print(self) -> None:
        printer, nest, lines, index = self._printer, self._nest, self._lines, self._printer.index
        segments = [s for p in nest.passes for s in p.segments]
        if len({self._order(s) for s in segments if self._touches_kept(s)}) > 1:
            raise Unsupported("rows kept in registers are visited in different orders")
        team = printer.tune("TEAM", self._teams())
        vector = common_vector(printer, [Access(printer, s) for s in segments if s.loops])
        vec = vector.text
        lines.add(f"constexpr int PER = {team} >= 128 ? 1 : 128 / {team};")
        lines.add(f"const int lane = threadIdx.x % {team};")
        lines.add(f"const {index} row = {index}(blockIdx.x) * PER + threadIdx.x / {team};")
        # Only teams within a warp share a block, and they meet by shuffles of their own lanes.
        lines.add(f"if (row >= {nest.row_count}) return;")
        decode(lines, nest.rows, "row", index)
        if nest.buffers:
            share = f"{team} * {vec}"
            lines.add(f"constexpr int kept = ({self._longest} + {share} - 1) / ({share}) * {vec};")
        for buffer in nest.buffers:
            lines.add(f"float {buffer.name}[kept];")
        for made in nest.passes:
            self._pass(made, team, vector)
        per = f"max(1, 128 / {team})"
        bounds = f"{team} >= 128 ? {team} : 128"
        printer.kernel(lines, f"cdiv({nest.row_count}, {per})", f"{team} * {per}", bounds)

    def _teams(self) -> list[int]:
        most = _KEPT_PER_THREAD if self._nest.buffers else _READ_PER_THREAD
        fits = [t for t in _TEAMS if -(-self._longest // t) <= most]
        fits = [t for t in fits if t == fits[0] or self._longest >= t * _LEAST_PER_THREAD]
        if not fits:
            raise Unsupported("rows too long for one team")
        # Nearest to a comfortable share first: that is the kernel judged before any tuning.
        fits.sort(key=lambda t: abs(math.log2(self._longest / t / _COMFORTABLE)))
        return fits[:_TEAM_OFFERS]

    def _touches_kept(self, segment: Segment) -> bool:
        names = set(self._kept)
        if any(s.buffer in names for s in segment.stores):
            return True
        bodies = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
        return any(n.op == "load" and n.attr[0] in names for b in bodies for n in b.walk())

    def _order(self, segment: Segment) -> tuple[object, ...]:
        """How the kept values lie along the row: equal for sweeps that meet them under the same number."""
        places = {(s.buffer, s.address) for s in segment.stores if s.buffer in self._kept}
        bodies = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
        places |= {n.attr for b in bodies for n in b.walk() if n.op == "load" and n.attr[0] in self._kept}
        flat = {flat_address(address, segment.loops) for _, address in places}
        if None in flat or len(flat) != 1:
            return (id(segment),)  # an order of its own: registers cannot be numbered alike
        return (extent_of(segment), *flat)

    def _pass(self, made: Pass, team: str, vector: Vector) -> None:
        lines, printer = self._lines, self._printer
        found = {r: Accumulator(r, printer.plan.row_names[r]) for r in made.finished}
        declare(lines, found)
        for segment in made.segments:
            self._segment(segment, found, team, vector)
        finish(lines, found, team)
        for reduce in made.finished:
            if reduce in printer.plan.shared:
                shared = printer.plan.shared[reduce].name
                lines.add(f"if (lane == 0) {shared}[row] = {found[reduce].name};")

    def _segment(self, segment: Segment, found: dict[Reduce, Accumulator], team: str, vector: Vector) -> None:
        lines, access, vec = self._lines, Access(self._printer, segment), vector.text
        if not segment.loops:
            # One element: every lane folds it in once, so only the first may.
            with lines.block("if (lane == 0)"):
                access.elements(lines, segment, ("0", Vector()), {}, {}, accumulators=found)
            return
        extent = extent_of(segment)
        with lines.block():
            lines.add(f"constexpr int items = ({extent} + {team} * {vec} - 1) / ({team} * {vec});")
            lines.add(f"#pragma unroll (items <= {_MAX_UNROLL} ? items : 4)")
            with lines.block("for (int k = 0; k < items; ++k)"):
                lines.add(f"const int j = (k * {team} + lane) * {vec};")
                with lines.block(f"if (items * {team} * {vec} == {extent} || j < {extent})"):
                    loads, targets = self._kept_places(segment, vec)
                    access.elements(lines, segment, ("j", vector), loads, targets, accumulators=found)

    def _kept_places(self, segment: Segment, vec: str) -> tuple[dict[Place, str], dict[Place, str]]:
        element = "k" if vec == "1" else f"k * {vec} + v"
        loads: dict[Place, str] = {}
        bodies = [a.value for a in segment.accumulates] + [s.value for s in segment.stores]
        for node in (n for b in bodies for n in b.walk() if n.op == "load" and n.attr[0] in self._kept):
            loads[node.attr] = f"{node.attr[0]}[{element}]"
        targets = {
            (s.buffer, s.address): f"{s.buffer}[{element}]" for s in segment.stores if s.buffer in self._kept
        }
        return loads, targets


def float_sums(printer: CudaPrinter, nest: Nest) -> None:
    """Raise Unsupported unless blocks can share the nest's rows."""
    if nest.buffers or any(r in printer.plan.shared for p in nest.passes for r in p.finished):
        raise Unsupported("rows shared by blocks keep nothing and feed no other nest")
    for reduce in (r for p in nest.passes for r in p.finished):
        acc = Accumulator(reduce, printer.plan.row_names[reduce])
        if acc.is_arg or acc.watches_nan or acc.dtype != "float32":
            raise Unsupported("rows shared by blocks are float sums and moments only")
    if any(len(p.segments) != 1 for p in nest.passes):
        raise Unsupported("rows shared by blocks have no index conditions")


def declare(lines: Lines, found: dict[Reduce, Accumulator]) -> None:
    for acc in found.values():
        for kind, name, start in acc.scratch() if acc.in_parts else acc.variables():
            lines.add(f"{kind} {name} = {start};")


def finish(lines: Lines, found: dict[Reduce, Accumulator], team: str) -> None:
    """The row's value in every thread of the team, under the reduction's name."""
    for acc in found.values():
        name = acc.name
        if acc.in_parts:
            lines.add(f"const float {name} = kf::team_reduce<{team}>({name}_part, kf::Sum());")
            continue
        if acc.is_arg:
            order = "true" if acc.kind == "max" else "false"
            lines.add(f"kf::team_arg<{team}, {order}>({name}_total, {name}_at);")
        else:
            lines.add(f"{name}_total = kf::team_reduce<{team}>({name}_total, kf::{_OPERATION[acc.kind]}());")
        if acc.watches_nan:
            lines.add(f"{name}_nan = kf::team_reduce<{team}>({name}_nan, kf::Or());")
        kind, value = acc.result()
        lines.add(f"const {kind} {name} = {value};")


class SplitRows:
    """PARTS blocks per row: every pass is a kernel of its own, partial results meet in workspaces.

    Later passes walk the blocks backwards: what the pass before touched last is still in L2.
    """

    def __init__(self, printer: CudaPrinter, nest: Nest) -> None:
        float_sums(printer, nest)
        self._printer = printer
        self._nest = nest
        self._longest = max(extent_of(s) for p in nest.passes for s in p.segments)
        self._done: list[Pass] = []

    def print(self) -> None:
        for number, made in enumerate(self._nest.passes):
            self._kernel(made, number)

    def _kernel(self, made: Pass, number: int) -> None:
        backwards = number % 2 == 1
        printer, nest = self._printer, self._nest
        (segment,) = made.segments
        lines, index = Lines(), printer.index
        parts = printer.tune("PARTS", _part_counts(nest.row_count, self._longest))
        block = printer.tune("SPLIT_BLOCK", [512, 256, 1024])
        extent = extent_of(segment)
        access = Access(printer, segment)
        vector = common_vector(printer, [access])
        vec = vector.text
        if not segment.loops:
            lines.add(f"const {index} row = blockIdx.x;", "const int lane = threadIdx.x;")
            decode(lines, nest.rows, "row", index)
            self._earlier(lines, parts)
            with lines.block("if (lane == 0)"):
                access.elements(lines, segment, ("0", Vector()), {}, {})
            printer.kernel(lines, str(nest.row_count), block, block)
            return
        order = "(gridDim.x - 1 - blockIdx.x)" if backwards else "blockIdx.x"
        lines.add(f"const {index} row = {order} / {parts}, part = {order} % {parts};")
        decode(lines, nest.rows, "row", index)
        self._earlier(lines, parts)
        lines.add(
            f"constexpr {index} chunk = (({extent} + {parts} - 1) / {parts} + {vec} - 1) / {vec} * {vec};"
        )
        lines.add(f"const {index} end = kf::min<{index}>((part + 1) * chunk, {extent});")
        sweep(
            printer,
            lines,
            made,
            ("part * chunk", "end", block, vector),
            last=number + 1 == len(nest.passes),
        )
        for reduce in made.finished:
            leave(
                printer, lines, made, reduce, (block, f"row * {parts} + part", f"{nest.row_count} * {parts}")
            )
        self._done.append(made)
        printer.kernel(lines, f"{nest.row_count} * {parts}", block, block)

    def _earlier(self, lines: Lines, parts: str) -> None:
        """Values of the passes before, put together again by every warp for itself."""
        for made in self._done:
            meet(self._printer, lines, made, parts, f"row * {parts}")


def is_spread(made: Pass, reduce: Reduce) -> bool:
    return any(a.moments and a.reduce is reduce for a in made.segments[0].accumulates)


def is_implied(made: Pass, reduce: Reduce) -> bool:
    """A sum whose moments are taken in the same sweep."""
    return any(a.moments and a.reduce.spread_of is reduce for a in made.segments[0].accumulates)


def sweep(
    printer: CudaPrinter,
    lines: Lines,
    made: Pass,
    walk: tuple[str, str, str, Vector],
    *,
    last: bool,
    kept: Kept | None = None,
) -> None:
    """One block's walk (from, to, threads, vector) over its share of a row, folding and storing."""
    start, end, block, vector = walk
    (segment,) = made.segments
    vec = vector.text
    found = {r: Accumulator(r, printer.plan.row_names[r]) for r in made.finished}
    spreads = [a.reduce for a in segment.accumulates if a.moments]
    implied = {r.spread_of for r in spreads}
    for acc in found.values():
        if acc.reduce in spreads:
            lines.add(f"kf::Moments {acc.name}_moments;")
        elif acc.reduce not in implied:
            lines.add(f"float {acc.name}_part = 0;")
    lines.add("#pragma unroll 4")
    head = f"for ({printer.index} j = {start} + threadIdx.x * {vec}; j < {end}; j += {block} * {vec})"
    with lines.block(head):
        if kept is not None:
            lines.add(f"const int local = j - {start};")
        for reduce in spreads:
            lines.add(f"float {found[reduce].name}_values[{vec}];")
        Access(printer, segment).elements(
            lines,
            segment,
            ("j", vector),
            {},
            {},
            accumulators=with_moments(found, set(spreads), vec),
            last=last,
            kept=kept,
        )
        for reduce in spreads:
            lines.add(f"{found[reduce].name}_moments.add({found[reduce].name}_values);")


def leave(
    printer: CudaPrinter, lines: Lines, made: Pass, reduce: Reduce, where: tuple[str, str, str]
) -> None:
    """Put a block's partial result of a reduction into its workspace: (threads, place, size) of it."""
    block, at, size = where
    name = printer.plan.row_names[reduce]
    if is_implied(made, reduce):
        return
    printer.workspaces[f"{name}_parts"] = ("float32", size)
    if not is_spread(made, reduce):
        lines.add(f"const float {name}_block = kf::team_reduce<{block}>({name}_part, kf::Sum());")
        lines.add(f"if (threadIdx.x == 0) {name}_parts[{at}] = {name}_block;")
        return
    printer.workspaces[f"{name}_means"] = ("float32", size)
    printer.workspaces[f"{name}_counts"] = ("float32", size)
    lines.add(f"{name}_moments.meet<{block}>();")
    with lines.block("if (threadIdx.x == 0)"):
        for kind, what in (("means", "mean"), ("parts", "spread"), ("counts", "count")):
            lines.add(f"{name}_{kind}[{at}] = {name}_moments.{what};")


def meet(printer: CudaPrinter, lines: Lines, made: Pass, parts: str, at: str) -> None:
    """The values of a sweep's reductions from all blocks' partial results."""
    for reduce in made.finished:
        name = printer.plan.row_names[reduce]
        if is_spread(made, reduce):
            places = ", ".join(f"{name}_{what} + {at}" for what in ("means", "parts", "counts"))
            name_values(printer, lines, reduce, f"kf::meet_moments<{parts}>({places})")
        elif not is_implied(made, reduce):
            lines.add(f"const float {name} = kf::meet_sums<{parts}>({name}_parts + {at});")


def name_values(printer: CudaPrinter, lines: Lines, spread: Reduce, moments: str) -> None:
    """Spread and sum from moments, under the names the formulas use."""
    name = printer.plan.row_names[spread]
    assert spread.spread_of is not None
    lines.add(
        f"const kf::Moments {name}_all = {moments};",
        f"const float {name} = {name}_all.spread;",
        f"const float {printer.plan.row_names[spread.spread_of]} = {name}_all.sum();",
    )


class _Spread(Accumulator):
    """Collects a vector of values; the moments take them at once, and their sum with them."""

    def fold(self, value: str, place: str, at: str = "") -> list[str]:  # noqa: ARG002
        return [f"{self.name}_values[v] = {value};"]


class _Implied(Accumulator):
    """A sum that moments already hold."""

    def fold(self, value: str, place: str, at: str = "") -> list[str]:  # noqa: ARG002
        return []


def with_moments(
    found: dict[Reduce, Accumulator], spreads: set[Reduce], vec: str
) -> dict[Reduce, Accumulator]:
    if spreads and vec == "1":
        raise Unsupported("moments are taken of whole vectors")
    implied = {r.spread_of for r in spreads}
    return {
        r: _Spread(r, a.name) if r in spreads else _Implied(r, a.name) if r in implied else a
        for r, a in found.items()
    }


def _part_counts(rows: int, longest: int) -> list[int]:
    """Blocks per row so that all rows together fill the device a few times, each with work to do."""
    counts = dict.fromkeys(max(1, n // rows) for n in _SPLIT_BLOCKS)
    found = [n for n in counts if n > 1 and longest // n >= _LEAST_PER_BLOCK]
    if not found:
        raise Unsupported("rows too short to share between blocks")
    return found
