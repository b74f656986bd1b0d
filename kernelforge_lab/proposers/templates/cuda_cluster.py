"""CUDA kernels over few long rows: a cluster of blocks per row, the row kept in shared memory.

One sweep over memory instead of two or three: what a block has loaded for the statistics it finds in
its shared memory for the result (as much as fits; the rest comes from L2). Partial results meet
through distributed shared memory, so the whole region is one launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ...kernels.spec import itemsize_bytes
from .c_lines import Lines
from .cuda_access import Access, Kept, Place, Vector, common_vector, decode, flat_address
from .cuda_rows import extent_of, float_sums, is_implied, is_spread, name_values, sweep
from .lowering import Unsupported
from .plan import Nest, Pass
from .tensor import Reduce

if TYPE_CHECKING:
    from .cuda import CudaPrinter

# A buffer with its address as a function of the row's flat number.
Key: TypeAlias = tuple[Any, ...]

# Of a Hopper SM's 227 KB; the rest is for the reductions' own scratch.
_KEEP_BYTES = 216 * 1024
# Portable cluster sizes.
_CLUSTERS = (8, 4)
# Rows shorter than this are no work for a cluster.
_LEAST_PER_CLUSTER = 1 << 15


class ClusterRows:
    def __init__(self, printer: CudaPrinter, nest: Nest) -> None:
        float_sums(printer, nest)
        self._printer = printer
        self._nest = nest
        self._sweeps = [p for p in nest.passes if p.segments[0].loops]
        if len({extent_of(p.segments[0]) for p in self._sweeps}) != 1 or len(self._sweeps) < 2:
            raise Unsupported("a cluster takes two or more sweeps of one length")
        self._extent = extent_of(self._sweeps[0].segments[0])
        if self._extent < _LEAST_PER_CLUSTER:
            raise Unsupported("rows too short for a cluster")
        self._lines = Lines()
        self._slots = 0

    def print(self) -> None:
        printer, nest, lines, index = self._printer, self._nest, self._lines, self._printer.index
        accesses = [Access(printer, p.segments[0]) for p in self._sweeps]
        vector = common_vector(printer, accesses)
        kept = self._kept(vector)
        vec, extent = vector.text, self._extent
        parts, block = printer.tune("CLUSTER", list(_CLUSTERS)), printer.tune("CLUSTER_BLOCK", [1024, 512])
        lines.add(f"const {index} row = blockIdx.x / {parts}, part = blockIdx.x % {parts};")
        decode(lines, nest.rows, "row", index)
        chunk = f"cdiv(cdiv({extent}, {parts}), {vec}) * {vec}"
        lines.add(f"constexpr int chunk = (({extent} + {parts} - 1) / {parts} + {vec} - 1) / {vec} * {vec};")
        each = sum(itemsize_bytes(printer.dtypes[b]) for b, *_ in kept)
        most = _KEEP_BYTES // each // 64 * 64
        lines.add(f"constexpr int cap = chunk < {most} ? chunk : {most};")
        lines.add("extern __shared__ __align__(16) unsigned char kf_shared[];")
        offset = "0"
        for (buffer, *_), name in kept.items():
            kind = f"kf::Vec<{printer.element_types()[buffer]}, {vec}>"
            lines.add(f"auto {name} = reinterpret_cast<{kind}*>(kf_shared + {offset});")
            offset += f" + cap * {itemsize_bytes(printer.dtypes[buffer])}"
        slots = sum(3 if is_spread(p, r) else 1 for p in self._sweeps for r in p.finished)
        lines.add(f"__shared__ float meet[{max(slots, 1)}];")
        lines.add(f"const {index} start = part * chunk, end = kf::min<{index}>(start + chunk, {extent});")
        for number, made in enumerate(nest.passes):
            if made in self._sweeps:
                names = {p: kept[k] for p, k in self._keys(made, vector).items() if k in kept}
                last = made is self._sweeps[-1]
                keep = Kept(names, writes=number == 0)
                sweep(printer, lines, made, ("start", "end", block, vector), last=last, kept=keep)
                self._meet(made, parts, block)
            else:
                access = Access(printer, made.segments[0])
                with lines.block("if (part == 0 && threadIdx.x == 0)"):
                    access.elements(lines, made.segments[0], ("0", Vector()), {}, {})
        # Nobody leaves while another block may still read its shared memory.
        lines.add("kf::cluster_sync();")
        smem = f"smem=min({chunk}, {most}) * {each} "
        printer.kernel(lines, f"{nest.row_count} * {parts}", block, block, (f"KF_CLUSTER({parts}) ", smem))

    def _keys(self, made: Pass, vector: Vector) -> dict[Place, Key]:
        """Wide loads of a sweep by what they read at each flat number of the row."""
        (segment,) = made.segments
        found: dict[Place, Key] = {}
        for buffer, address in Access(self._printer, segment).wide_loads(vector):
            flat = flat_address(address, segment.loops)
            if flat is not None and flat[-1] == 1:
                found[buffer, address] = (buffer, *flat)
        return found

    def _kept(self, vector: Vector) -> dict[Key, str]:
        """Wide loads of the first sweep that a later one repeats."""
        if not vector.widths:
            raise Unsupported("a cluster keeps whole vectors")
        first, *others = (self._keys(p, vector) for p in self._sweeps)
        later = {key for keys in others for key in keys.values()}
        again = [key for key in first.values() if key in later]
        if not again:
            raise Unsupported("no load of the first sweep is needed again")
        return {key: f"raw{k}" for k, key in enumerate(again)}

    def _meet(self, made: Pass, parts: str, block: str) -> None:
        """The sweep's reductions over all blocks of the cluster, in every thread."""
        lines = self._lines
        if not made.finished:
            return
        plan = self._printer.plan
        spreads: list[tuple[Reduce, str]] = []
        ask: list[str] = []
        for reduce in made.finished:
            name, slot = plan.row_names[reduce], f"meet + {self._slots}"
            if is_implied(made, reduce):
                continue
            if is_spread(made, reduce):
                lines.add(f"{name}_moments.meet<{block}>();")
                with lines.block("if (threadIdx.x == 0)"):
                    for k, what in enumerate(("mean", "spread", "count")):
                        lines.add(f"meet[{self._slots + k}] = {name}_moments.{what};")
                spreads.append((reduce, slot))
                self._slots += 3
            else:
                lines.add(f"const float {name}_block = kf::team_reduce<{block}>({name}_part, kf::Sum());")
                lines.add(f"if (threadIdx.x == 0) meet[{self._slots}] = {name}_block;")
                ask.append(f"const float {name} = kf::cluster_sum<{parts}>({slot});")
                self._slots += 1
        lines.add("kf::cluster_sync();", *ask)
        for reduce, slot in spreads:
            name_values(self._printer, lines, reduce, f"kf::cluster_moments<{parts}>({slot})")
