"""Plan → C++/OpenMP source in the ``// forge:`` format."""

from __future__ import annotations

import itertools
from contextlib import ExitStack, nullcontext

from ...kernels.region import Region
from .c_body import Body, Scope
from .c_expr import C_TYPE, affine_text
from .c_lines import Lines, blocked, loop
from .c_reduce import Accumulator
from .index import ZERO, Affine, Var, variable
from .plan import Nest, Pass, Plan, Segment, Strategy
from .tensor import Reduce

# Steps of a vector loop after which a float sum is moved into its double total.
_SUM_STEPS = 2048
# The same when the sum is an array of lanes: one step is one element per lane.
_LANE_STEPS = 256
# A vector loop shorter than this, with loops around it, becomes lanes of an accumulator array:
# a horizontal sum per handful of elements would cost more than the elements.
_SHORT_LOOP = 48
# Outer loops with fewer iterations than this do not feed the threads: the inner loop is shared instead.
_FEW_ROWS = 8
_PARTS = 16


class CppPrinter:
    """Prints one plan. ``threads``: how many the machine offers (tune values go up to it)."""

    def __init__(self, plan: Plan, region: Region, strategy: Strategy, threads: int) -> None:
        self._plan = plan
        self._region = region
        self._strategy = strategy
        self._lines = Lines()
        self._numbers = itertools.count()
        self._lane_nests = 0
        self._tunes: dict[str, list[int]] = {"THREADS": _thread_counts(threads)}
        self._dtypes = dict(zip(region.input_names, (s.dtype for s in region.inputs), strict=True))
        self._dtypes |= {w.name: w.dtype for w in plan.shared.values()}

    def source(self) -> str:
        for nest in self._plan.nests:
            self._nest(nest)
        workspaces = list(self._plan.shared.values())
        region = self._region
        params = [f"const {n.upper()}_T* __restrict__ {n}" for n in region.input_names]
        params += [f"{n.upper()}_T* __restrict__ {n}" for n in region.output_names]
        params += [f"{C_TYPE[w.dtype]}* __restrict__ {w.name}" for w in workspaces]
        args = [*region.input_names, *region.output_names, *(w.name for w in workspaces)]
        head = ["// forge: target cpu", f"// forge: idea {self._strategy.idea}"]
        head += [f"// forge: tune {n} {' '.join(map(str, v))}" for n, v in self._tunes.items()]
        head += [f"// forge: workspace {w.name} {w.dtype} {w.numel}" for w in workspaces]
        head += [f"// forge: launch region args=({', '.join(args)})", ""]
        head += ['extern "C" void region(', "    " + ",\n    ".join(params) + ") {"]
        return "\n".join([*head, *self._lines.out, "}", ""])

    # -- nests ---------------------------------------------------------------------------------

    def _nest(self, nest: Nest) -> None:
        if not nest.rows and not any(p.finished for p in nest.passes):
            for made in nest.passes:
                for segment in made.segments:
                    self._plain(segment, made.tile)
            return
        lane = nest.lane
        heads = [loop(v) for v in nest.rows if v is not lane]
        if lane is not None:
            # Each nest has lanes of its own: what suits one row count need not divide another.
            tune = f"LANES{self._lane_nests or ''}"
            self._lane_nests += 1
            self._tunes[tune] = _lane_counts(lane.extent)
            heads.append(f"for (long base = 0; base < {lane.extent}; base += {tune})")
        split = nest.split and lane is None and not nest.buffers
        if heads and not split:
            collapse = f" collapse({len(heads)})" if len(heads) > 1 else ""
            self._lines.pragma(f"parallel for{collapse} schedule(static) num_threads(THREADS)")
        with self._lines.nest(heads):
            if lane is not None:
                exact = all(lane.extent % n == 0 for n in self._tunes[tune])
                width = "lanes" if exact else f"std::min<long>(lanes, {lane.extent} - base)"
                self._lines.add(f"constexpr int lanes = {tune};", f"const int width = {width};")
            for buffer in nest.buffers:
                size = f"{buffer.size} * lanes" if lane is not None else str(buffer.size)
                self._lines.add(f"alignas(64) {C_TYPE[buffer.dtype]} {buffer.name}[{size}];")
            for made in nest.passes:
                self._pass(nest, made, split)

    def _pass(self, nest: Nest, made: Pass, split: bool) -> None:
        accumulators = {r: Accumulator(r, self._plan.row_names[r]) for r in made.finished}
        lane = nest.lane
        for acc in accumulators.values():
            self._declare(acc.variables(), "lanes" if lane is not None else "")
        for segment in made.segments:
            body = self._body(segment, nest)
            # Several segments have their running sums under the same names, each in its own block.
            with self._lines.block() if len(made.segments) > 1 else nullcontext():
                if lane is not None:
                    self._lanes(segment, body, accumulators, lane)
                elif split and segment.loops and not any(a.is_arg for a in accumulators.values()):
                    self._shared(segment, body, accumulators)
                else:
                    self._row(segment, body, accumulators)
        for acc in accumulators.values():
            self._finish(nest, acc)

    def _body(self, segment: Segment, nest: Nest | None) -> Body:
        kept = [b.name for b in nest.buffers] if nest else []
        lane = nest.lane if nest else None
        scope = Scope(self._dtypes, self._plan.row_names, kept, lane, self._numbers)
        return Body(self._lines, segment, scope)

    def _declare(self, variables: list[tuple[str, str, str]], size: str) -> None:
        for kind, name, start in variables:
            if size:
                self._lines.add(f"{kind} {name}[{size}];")
                self._lines.add(f"for (int t = 0; t < {size}; ++t) {name}[t] = {start};")
            else:
                self._lines.add(f"{kind} {name} = {start};")

    def _finish(self, nest: Nest, acc: Accumulator) -> None:
        """The row's value under its name, and into the workspace when another nest reads it."""
        workspace = self._plan.shared.get(acc.reduce)
        number = affine_text(_row_number(nest.rows))
        if nest.lane is None:
            kind, value = acc.result()
            self._lines.add(f"const {kind} {acc.name} = {value};")
            if workspace:
                self._lines.add(f"{workspace.name}[{number}] = {acc.name};")
            return
        kind, value = acc.result("[t]")
        self._lines.add(f"{kind} {acc.name}[lanes];")
        with self._lines.block("for (int t = 0; t < width; ++t)"):
            self._lines.add(f"{acc.name}[t] = {value};")
            if workspace:
                self._lines.add(f"const long {nest.lane.name} = base + t;")
                self._lines.add(f"{workspace.name}[{number}] = {acc.name}[t];")

    # -- segments ------------------------------------------------------------------------------

    def _row(
        self,
        segment: Segment,
        body: Body,
        accumulators: dict[Reduce, Accumulator],
        bounds: tuple[str, str] | None = None,
    ) -> None:
        """One row: loops around a vector loop. ``bounds`` replace the outermost loop's range."""
        lines, loops = self._lines, segment.loops
        used = [accumulators[a.reduce] for a in segment.accumulates]
        body.lets(0)
        if not loops:
            self._scratch(used, "")
            body.statements(accumulators)
            self._flush(used)
            return
        if len(loops) > 1 and loops[-1].extent <= _SHORT_LOOP and used and all(a.in_parts for a in used):
            self._short_rows(segment, body, accumulators, bounds)
            return
        with ExitStack() as scope:
            for k, var in enumerate(loops[:-1]):
                lo, hi = bounds if bounds and k == 0 else ("", "")
                scope.enter_context(lines.block(loop(var, lo, hi)))
                body.lets(k + 1)
            vector = loops[-1]
            lo, hi = bounds if bounds and len(loops) == 1 else ("", "")
            long_sum = any(a.in_parts for a in used) and vector.extent > _SUM_STEPS
            if long_sum:
                head, end, inner = blocked(vector, _SUM_STEPS)
                if lo:
                    head = head.replace(f"= {vector.lo};", f"= {lo};").replace(f"< {vector.hi};", f"< {hi};")
                    end = end.replace(f", {vector.hi})", f", {hi})")
                scope.enter_context(lines.block(head))
                lines.add(end)
            else:
                inner = loop(vector, lo, hi)
            self._scratch(used, "")
            if not any(a.is_arg for a in used):
                clauses = "".join(f" {c}" for a in used for c in a.clauses())
                lines.pragma(f"simd{clauses}")
            with lines.block(inner):
                body.lets(len(loops))
                body.statements(accumulators)
            self._flush(used)

    def _scratch(self, used: list[Accumulator], size: str) -> None:
        for acc in used:
            self._declare(acc.scratch(), size)

    def _flush(self, used: list[Accumulator]) -> None:
        for acc in used:
            if acc.in_parts:
                self._lines.add(*acc.combine("", "_part"))

    def _short_rows(
        self,
        segment: Segment,
        body: Body,
        accumulators: dict[Reduce, Accumulator],
        bounds: tuple[str, str] | None,
    ) -> None:
        """A short vector loop under a long one: sums as arrays over the short loop."""
        lines, loops = self._lines, segment.loops
        used = [accumulators[a.reduce] for a in segment.accumulates]
        vector, around = loops[-1], loops[-2]
        size = str(vector.extent)
        with ExitStack() as scope:
            for k, var in enumerate(loops[:-2]):
                lo, hi = bounds if bounds and k == 0 else ("", "")
                scope.enter_context(lines.block(loop(var, lo, hi)))
                body.lets(k + 1)
            head, end, inner = blocked(around, _LANE_STEPS)
            if bounds and len(loops) == 2:
                lo, hi = bounds
                head = head.replace(f"= {around.lo};", f"= {lo};").replace(f"< {around.hi};", f"< {hi};")
                end = end.replace(f", {around.hi})", f", {hi})")
            scope.enter_context(lines.block(head))
            lines.add(end)
            self._scratch(used, size)
            with lines.block(inner):
                body.lets(len(loops) - 1)
                lines.pragma("simd")
                with lines.block(loop(vector)):
                    body.lets(len(loops))
                    body.statements(accumulators, f"[{vector.name} - {vector.lo}]")
            for acc in used:
                lines.add(f"for (int t = 0; t < {size}; ++t) {acc.combine('[t]', '_part')[0]}")

    def _lanes(
        self, segment: Segment, body: Body, accumulators: dict[Reduce, Accumulator], lane: Var
    ) -> None:
        """Neighbouring rows side by side: the vector loop runs over rows."""
        lines, loops = self._lines, segment.loops
        used = [accumulators[a.reduce] for a in segment.accumulates]
        parts = [a for a in used if a.in_parts]
        if loops:
            body.lets(0)
            body.lane_lets(0)
        with ExitStack() as scope:
            for k, var in enumerate(loops):
                if k == len(loops) - 1 and parts:
                    head, end, inner = blocked(var, _LANE_STEPS)
                    scope.enter_context(lines.block(head))
                    lines.add(end)
                    self._scratch(parts, "lanes")
                else:
                    inner = loop(var)
                if k < len(loops) - 1:
                    scope.enter_context(lines.block(inner))
                    body.lets(k + 1)
                    body.lane_lets(k + 1)
            if not loops and parts:
                self._scratch(parts, "lanes")
            with ExitStack() as innermost:
                if loops:
                    innermost.enter_context(lines.block(inner))
                if not any(a.is_arg for a in used):
                    lines.pragma("simd")
                with lines.block("for (int t = 0; t < width; ++t)"):
                    lines.add(f"const long {lane.name} = base + t;")
                    body.lets(len(loops))
                    body.statements(accumulators, "[t]")
            for acc in parts:
                lines.add(f"for (int t = 0; t < lanes; ++t) {acc.name}_total[t] += {acc.name}_part[t];")

    def _shared(self, segment: Segment, body: Body, accumulators: dict[Reduce, Accumulator]) -> None:
        """All threads on one row: its outermost loop in parts, combined in order (so repeatable)."""
        lines, first = self._lines, segment.loops[0]
        used = [accumulators[a.reduce] for a in segment.accumulates]
        self._tunes.setdefault("PARTS", [_PARTS, _PARTS * 4])
        for acc in used:
            for kind, name, _ in acc.variables():
                lines.add(f"{kind} {name}_each[PARTS];")
        lines.pragma("parallel for schedule(static) num_threads(THREADS)")
        with lines.block("for (long part = 0; part < PARTS; ++part)"):
            for acc in used:
                self._declare(acc.variables(), "")
            lines.add(f"const long from = {first.lo} + {first.extent} * part / PARTS;")
            lines.add(f"const long to = {first.lo} + {first.extent} * (part + 1) / PARTS;")
            self._row(segment, body, accumulators, ("from", "to"))
            for acc in used:
                lines.add(*(f"{name}_each[part] = {name};" for _, name, _ in acc.variables()))
        for acc in used:
            with lines.block("for (int part = 0; part < PARTS; ++part)"):
                lines.add(*acc.combine("[part]", "_each"))

    def _plain(self, segment: Segment, tile: tuple[str, str] | None) -> None:
        """Elementwise outputs: threads over the outer loops, vectors along the innermost."""
        lines, loops = self._lines, segment.loops
        body = self._body(segment, None)
        threads = "schedule(static) num_threads(THREADS)"
        with lines.block():
            body.lets(0)
            if not loops:
                body.statements({})
                return
            if tile is not None and self._tiled(segment, body, tile):
                return
            collapse, rows = 0, 1
            while collapse < len(loops) - 1 and rows < 64 and (collapse == 0 or not body.has_lets(collapse)):
                rows *= loops[collapse].extent
                collapse += 1
            outer_feeds = rows >= _FEW_ROWS
            with ExitStack() as scope:
                if collapse and outer_feeds:
                    lines.pragma(f"parallel for{f' collapse({collapse})' if collapse > 1 else ''} {threads}")
                for k, var in enumerate(loops[:-1]):
                    if k < collapse - 1:
                        lines.add(loop(var))
                        continue
                    scope.enter_context(lines.block(loop(var)))
                    body.lets(k + 1)
                lines.pragma("simd" if collapse and outer_feeds else f"parallel for simd {threads}")
                with lines.block(loop(loops[-1])):
                    body.lets(len(loops))
                    body.statements({})

    def _tiled(self, segment: Segment, body: Body, tile: tuple[str, str]) -> bool:
        """Transposing loops in square blocks, so that both sides' cache lines are used whole."""
        lines = self._lines
        by_name = {v.name: v for v in segment.loops}
        if not all(n in by_name for n in tile):
            return False
        store, load = (by_name[n] for n in tile)
        rest = [v for v in segment.loops if v not in (store, load)]
        segment.loops = [*rest, load, store]
        body = self._body(segment, None)
        self._tunes.setdefault("TILE", [16, 32, 64])
        heads = [loop(v) for v in rest]
        heads += [
            f"for (long {v.name}b = {v.lo}; {v.name}b < {v.hi}; {v.name}b += TILE)" for v in (load, store)
        ]
        body.lets(0)
        lines.pragma(f"parallel for collapse({len(heads)}) schedule(static) num_threads(THREADS)")
        with lines.nest(heads):
            for k in range(len(rest)):
                body.lets(k + 1)
            with lines.block(loop(load, f"{load.name}b", f"std::min<long>({load.name}b + TILE, {load.hi})")):
                body.lets(len(rest) + 1)
                lines.pragma("simd")
                end = f"std::min<long>({store.name}b + TILE, {store.hi})"
                with lines.block(loop(store, f"{store.name}b", end)):
                    body.lets(len(rest) + 2)
                    body.statements({})
        return True


def _row_number(rows: list[Var]) -> Affine:
    total = ZERO
    for var in rows:
        total = total * var.extent + variable(var)
    return total


def _thread_counts(threads: int) -> list[int]:
    """All threads first, then one: small regions pay more for waking threads than they gain."""
    counts = [threads]
    while counts[-1] > 1:
        counts.append(counts[-1] // 2)
    return [*dict.fromkeys([counts[0], *counts[1:3], 1])]


def _lane_counts(extent: int) -> list[int]:
    fits = [n for n in (32, 64, 16, 128) if extent % n == 0]
    return fits or [n for n in (32, 16) if n <= extent] or [extent]
