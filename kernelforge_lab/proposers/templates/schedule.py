"""From a lowered region and a strategy to loop nests (plan.py)."""

from __future__ import annotations

from itertools import pairwise

from ...kernels.spec import TensorSpec, contiguous_strides
from .cache import RowCache
from .expr import Builder, Expr, compute_type
from .grouping import Group, group_stages
from .index import ZERO, Affine, Var, flatten, mixed_radix, substitute, variable
from .loops import choose_innermost, merge_loops, order_loops, segment_boxes, stride_one_votes
from .lowering import Lowered
from .plan import Accumulate, Nest, Pass, Plan, Segment, Store, Strategy, Workspace
from .stages import Stage, reduce_stage, reductions, store_stage
from .tensor import Evaluator, Index, Reduce, Tensor


class Scheduler:
    """Builds one plan. ``outputs`` are the region's specs in order (names out0, out1 …)."""

    def __init__(self, lowered: Lowered, outputs: tuple[TensorSpec, ...], strategy: Strategy) -> None:
        self._lowered = lowered
        self._specs = outputs
        self._strategy = strategy
        self._build = Builder()
        self._row_names: dict[Reduce, str] = {}
        self._workspaces: dict[Reduce, Workspace] = {}

    def plan(self) -> Plan:
        reduces = reductions(self._lowered.outputs)
        stages = [reduce_stage(self._build, r, k) for k, r in enumerate(reduces)]
        self._row_names = {r: f"s{k}" for k, r in enumerate(reduces)}
        for k, (tensor, spec) in enumerate(zip(self._lowered.outputs, self._specs, strict=True)):
            number = len(reduces) + k
            stages.append(store_stage(self._build, tensor, number, f"out{k}", spec.strides))
        groups, loose = group_stages(stages, fuse=self._strategy.fuse_rows)
        self._share_between(groups, loose)
        plain = [s for s in loose if not s.refs]
        nests: list[Nest] = []
        for group in groups:
            group.align()
            nests.append(self._row_nest(group, plain))
        rest = [s for s in loose if s.refs or s in plain]
        nests += [self._plain_nest(batch) for batch in _same_shape(rest)]
        return Plan(nests, dict(self._workspaces), self._row_names)

    # -- values that cross nests ---------------------------------------------------------------

    def _share_between(self, groups: list[Group], loose: list[Stage]) -> None:
        """Give a workspace to every reduction that is read outside its own nest."""
        home = {s.tensor: g for g in groups for s in g.stages if s.is_reduce}
        readers = [(s, g) for g in groups for s in g.stages] + [(s, None) for s in loose]
        for stage, group in readers:
            for reduce in stage.refs:
                inside = group is not None and home[reduce] is group and self._same_rows(stage, group, reduce)
                if not inside and reduce not in self._workspaces:
                    name = f"ws{len(self._workspaces)}"
                    dtype = compute_type(reduce.dtype)
                    self._workspaces[reduce] = Workspace(name, dtype, max(reduce.numel, 1))

    @staticmethod
    def _same_rows(stage: Stage, group: Group, reduce: Reduce) -> bool:
        return stage.ref_rows(reduce) == group.digits[id(stage)]

    def _evaluator(self, inside: set[Reduce]) -> Evaluator:
        stored: dict[Tensor, tuple[str, tuple[int, ...]]] = {
            r: (w.name, contiguous_strides(r.shape)) for r, w in self._workspaces.items() if r not in inside
        }
        return Evaluator(self._build, stored)

    # -- nests ---------------------------------------------------------------------------------

    def _row_nest(self, group: Group, plain: list[Stage]) -> Nest:
        """Passes over one row: reductions level by level, then the outputs that use them."""
        rows = group.row_vars()
        inside = {s.tensor for s in group.stages if s.is_reduce and isinstance(s.tensor, Reduce)}
        cache = RowCache(self._build, self._strategy.cache, [v.name for v in rows])
        passes = [
            self._pass(batch, rows, inside, cache, plain)
            for batch in _levels(group.stages, moments=self._strategy.moments)
        ]
        nest = Nest(rows, passes, cache.buffers, split=self._strategy.split)
        _finish_row_nest(nest, lanes=self._strategy.lanes)
        return nest

    def _pass(
        self,
        batch: list[Stage],
        rows: list[Var],
        inside: set[Reduce],
        cache: RowCache,
        plain: list[Stage],
    ) -> Pass:
        inner = batch[0].vars[len(rows) :]
        boxes = segment_boxes(inner, [self._body(s, s.source_index, inside) for s in batch])
        segments: list[Segment] = []
        evaluators: list[Evaluator] = []
        for box in boxes:
            narrowed = {v.name: variable(v) for v in box}
            evaluator = self._evaluator(inside)
            evaluator.cached = cache.lookup
            segment = Segment(list(box))
            for stage in batch:
                self._emit(stage, narrowed, evaluator, segment)
            segments.append(segment)
            evaluators.append(evaluator)
        self._store_on_the_way(rows, inner, evaluators, segments, plain)
        cache.note(inner, evaluators, segments)
        finished = [s.tensor for s in batch if s.is_reduce and isinstance(s.tensor, Reduce)]
        return Pass(segments, finished)

    def _emit(
        self, stage: Stage, narrowed: dict[str, Affine], evaluator: Evaluator, segment: Segment
    ) -> None:
        def at(index: Index) -> Index:
            return tuple(substitute(a, narrowed) for a in index)

        source = stage.source
        spread = self._spread_of(stage)
        if spread is not None:
            source = spread.source
        value = evaluator.value(source, at(stage.source_index))
        if stage.is_reduce and isinstance(stage.tensor, Reduce):
            place = flatten(at(stage.reduced), contiguous_strides(stage.tensor.reduced_shape))
            segment.accumulates.append(Accumulate(stage.tensor, value, place, spread is not None))
            return
        address = flatten(at(stage.kept), stage.strides)
        segment.stores.append(Store(stage.buffer, address, stage.tensor.dtype, value))

    def _spread_of(self, stage: Stage) -> Reduce | None:
        """The sum whose mean this stage's distances are from, when both are taken in one sweep."""
        tensor = stage.tensor
        return tensor.spread_of if self._strategy.moments and isinstance(tensor, Reduce) else None

    def _body(self, stage: Stage, index: Index, inside: set[Reduce]) -> Expr:
        return self._evaluator(inside).value(stage.source, index)

    def _store_on_the_way(
        self,
        rows: list[Var],
        inner: list[Var],
        evaluators: list[Evaluator],
        segments: list[Segment],
        plain: list[Stage],
    ) -> None:
        """Outputs that this pass computes anyway, once per element, are stored right here."""
        loops = {v.name: variable(v) for v in inner}
        everything = {v.name for v in (*rows, *inner)}
        for stage in list(plain):
            strides = contiguous_strides(stage.tensor.shape)
            found: list[tuple[Index, Expr]] = []
            for evaluator in evaluators:
                hit = next(((i, e) for (t, i), e in evaluator.seen.items() if t is stage.tensor), None)
                if hit is not None:
                    found.append(hit)
            # Over the whole loops (not a segment's part of them) every segment must visit the same
            # places, and together each place once.
            visits = {substitute(flatten(index, strides), loops) for index, _ in found}
            if len(found) != len(segments) or len(visits) != 1:
                continue
            if not _covers(visits.pop(), everything, stage.tensor.numel):
                continue
            for segment, (index, value) in zip(segments, found, strict=True):
                address = flatten(index, stage.strides)
                segment.stores.append(Store(stage.buffer, address, stage.tensor.dtype, value))
            plain.remove(stage)

    def _plain_nest(self, batch: list[Stage]) -> Nest:
        """Elementwise outputs of one shape in one nest without rows."""
        loops = _common_loops(batch)
        boxes = segment_boxes(loops, [self._body(s, s.source_index, set()) for s in batch])
        segments: list[Segment] = []
        for box in boxes:
            narrowed = {v.name: variable(v) for v in box}
            segment = Segment(list(box))
            evaluator = self._evaluator(set())
            for stage in batch:
                self._emit(stage, narrowed, evaluator, segment)
            segments.append(segment)
        made = Pass(segments)
        for segment in segments:
            merge_loops([segment], [])
            best = choose_innermost(segment)
            order_loops(segment, best)
        if self._strategy.tile:
            made.tile = _tile_pair(segments)
        return Nest([], [made])


def _covers(flat: Affine, names: set[str], numel: int) -> bool:
    digits = mixed_radix(flat)
    if digits is None:
        return False
    total = 1
    for var, _ in digits:
        total *= var.extent
    return total == numel and {v.name for v, _ in digits} == names


def _levels(stages: list[Stage], *, moments: bool) -> list[list[Stage]]:
    """Stages that can share a pass: same dependency level, same inner loops. Outputs go last."""
    level: dict[int, int] = {}
    of_reduce: dict[Reduce, int] = {}
    for stage in stages:
        below = [of_reduce[r] + 1 for r in stage.refs if r in of_reduce]
        if moments and isinstance(stage.tensor, Reduce) and stage.tensor.spread_of in of_reduce:
            below = [of_reduce[stage.tensor.spread_of]]
        level[id(stage)] = max(below, default=0)
        if stage.is_reduce and isinstance(stage.tensor, Reduce):
            of_reduce[stage.tensor] = level[id(stage)]
    last: dict[tuple[int, ...], int] = {}
    for stage in stages:
        if not stage.is_reduce:
            shape = _inner_shape(stage)
            last[shape] = max(last.get(shape, 0), level[id(stage)])
    batches: dict[tuple[int, bool, tuple[int, ...]], list[Stage]] = {}
    for stage in stages:
        shape = _inner_shape(stage)
        at = level[id(stage)] if stage.is_reduce else last[shape]
        batches.setdefault((at, not stage.is_reduce, shape), []).append(stage)
    return [batches[key] for key in sorted(batches)]


def _inner_shape(stage: Stage) -> tuple[int, ...]:
    return tuple(v.extent for v in stage.vars if v.name.startswith("i"))


def _same_shape(stages: list[Stage]) -> list[list[Stage]]:
    batches: dict[tuple[int, ...], list[Stage]] = {}
    for stage in stages:
        batches.setdefault(stage.tensor.shape, []).append(stage)
    return list(batches.values())


def _common_loops(batch: list[Stage]) -> list[Var]:
    """Rename each stage's loops to i0, i1 …, split alike so that equal shapes have equal loops."""
    points: list[set[int]] = [set() for _ in batch[0].tensor.shape]
    for stage in batch:
        for d, component in enumerate(stage.kept):
            points[d] |= {coef for _, coef in component.terms}
    loops: list[Var] = []
    whole: list[Affine] = []
    for d, size in enumerate(batch[0].tensor.shape):
        cuts = sorted(points[d] | {1, size})
        if any(b % a for a, b in pairwise(cuts)):
            cuts = [1, size]
        total = ZERO
        for low, high in reversed(list(pairwise(cuts))):
            var = Var(f"i{len(loops)}", 0, high // low)
            loops.append(var)
            total = total + variable(var) * low
        whole.append(total)
    for stage in batch:
        stage.kept = tuple(whole)
        stage.vars = list(loops)
    return loops


def _tile_pair(segments: list[Segment]) -> tuple[str, str] | None:
    """(store loop, load loop) when a load runs contiguously along another loop than the store.

    Only loads that change along the store's loop count: the others are re-read from cache anyway.
    """
    for segment in segments:
        if not segment.stores or len(segment.loops) < 2:
            continue
        inner = segment.loops[-1].name
        names = {v.name for v in segment.loops} - {inner}
        for store in segment.stores:
            for node in store.value.walk():
                if node.op == "load" and node.attr[1].coefficient(inner) > 1:
                    for name in names:
                        if node.attr[1].coefficient(name) == 1:
                            return inner, name
    return None


def _finish_row_nest(nest: Nest, *, lanes: bool) -> None:
    """Merge loops, pick the vector loop of every pass and, with ``lanes``, the vector row."""
    segments = [s for p in nest.passes for s in p.segments]
    nest.rows = merge_loops(segments, nest.rows)
    for segment in segments:
        order_loops(segment, choose_innermost(segment))
    if lanes:
        nest.lane = _lane(nest.rows, segments)


def _lane(rows: list[Var], segments: list[Segment]) -> Var | None:
    """The row that most accesses walk contiguously; none when every access runs along the row."""
    votes = [stride_one_votes(s) for s in segments]
    total = {v.name: sum(w.get(v.name, 0) for w in votes) for v in rows}
    best = max(rows, key=lambda v: total[v.name], default=None)
    return best if best is not None and total[best.name] else None
