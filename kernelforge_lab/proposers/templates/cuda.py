"""Plan → CUDA source in the ``// forge:`` format.

Three kinds of kernel: a *team* of threads per row with the row's values in registers, several blocks
per row (*split*) for few long rows, and *flat* elementwise ones. All use 16-byte accesses where the
addresses allow it. The loops, the fusion and the arithmetic are the plan's, as on the cpu.
"""

from __future__ import annotations

import itertools
import re

from ...kernels.region import Region
from ...kernels.symbols import C_TYPES
from .c_body import Body
from .c_expr import C_TYPE
from .c_lines import Lines
from .c_reduce import Accumulator
from .cuda_access import Access, common_vector, decode, index_type
from .cuda_cluster import ClusterRows
from .cuda_relay import RelayRows
from .cuda_rows import SplitRows, TeamRows
from .index import Var
from .lowering import Unsupported
from .plan import Nest, Plan, Segment, Strategy
from .tensor import Reduce

_BLOCKS = (256, 128, 512)
_ITEMS = (1, 2, 4)


class CudaPrinter:
    """Prints one plan as one file with a kernel per nest (per pass where rows are split)."""

    def __init__(self, plan: Plan, region: Region, strategy: Strategy) -> None:
        self.plan = plan
        self.region = region
        self.strategy = strategy
        self.numbers = itertools.count()
        self.tunes: dict[str, list[int]] = {}
        self.workspaces: dict[str, tuple[str, str]] = {
            w.name: (w.dtype, str(w.numel)) for w in plan.shared.values()
        }
        self.dtypes = dict(zip(region.input_names, (s.dtype for s in region.inputs), strict=True))
        self.dtypes |= dict(zip(region.output_names, (s.dtype for s in region.outputs), strict=True))
        self.stored = dict(self.dtypes) | {w.name: w.dtype for w in plan.shared.values()}
        self.index = index_type(plan)
        self._kernels: list[list[str]] = []
        self._launches: list[str] = []

    def source(self) -> str:
        for nest in self.plan.nests:
            if not nest.rows and not any(p.finished for p in nest.passes):
                for made in nest.passes:
                    self._flat(made.segments)
            elif nest.lane is not None:
                self._columns(nest)
            elif nest.split and self.strategy.cluster:
                ClusterRows(self, nest).print()
            elif nest.split and self.strategy.relay:
                RelayRows(self, nest).print()
            elif nest.split:
                SplitRows(self, nest).print()
            else:
                TeamRows(self, nest).print()
        head = ["// forge: target cuda", f"// forge: idea {self.strategy.idea}"]
        head += [f"// forge: tune {n} {' '.join(map(str, v))}" for n, v in self.tunes.items()]
        head += [f"// forge: workspace {n} {d} {size}" for n, (d, size) in self.workspaces.items()]
        return "\n".join([*head, *self._launches, "", *itertools.chain.from_iterable(self._kernels), ""])

    # -- what the row printers use ---------------------------------------------------------------

    def tune(self, name: str, values: list[int]) -> str:
        """Offer ``values`` under ``name``; a nest with other values gets a name of its own."""
        for number in itertools.count():
            unique = f"{name}{number or ''}"
            if self.tunes.setdefault(unique, values) == values:
                return unique
        raise AssertionError

    def kernel(
        self, lines: Lines, grid: str, block: str, bounds: str, extra: tuple[str, str] = ("", "")
    ) -> None:
        """Finish one kernel: its signature from the names its body uses, and its launch line.

        ``extra`` is a further attribute of the function and the launch's dynamic shared memory.
        """
        name = f"part{len(self._kernels)}"
        text = "\n".join(lines.out)
        used = [n for n in (*self.dtypes, *self.workspaces) if re.search(rf"\b{n}\b", text)]
        params = [f"{self._parameter(n)} __restrict__ {n}" for n in used]
        attribute, smem = extra
        head = [f'extern "C" __global__ void {attribute}__launch_bounds__({bounds}) {name}(']
        self._kernels.append([*head, "    " + ",\n    ".join(params) + ") {", *lines.out, "}", ""])
        self._launches.append(
            f"// forge: launch {name} grid=({grid}) block=({block}) {smem}args=({', '.join(used)})"
        )

    def _parameter(self, name: str) -> str:
        if name in self.dtypes:
            return f"{'const ' if name.startswith('in') else ''}{name.upper()}_T*"
        return f"{C_TYPE[self.workspaces[name][0]]}*"

    def element_types(self) -> dict[str, str]:
        """C element type of every buffer."""
        types = {n: f"{n.upper()}_T" for n in self.dtypes}
        return types | {n: C_TYPES[d] for n, (d, _) in self.workspaces.items()}

    # -- flat ------------------------------------------------------------------------------------

    def _flat(self, segments: list[Segment]) -> None:
        """Elementwise: every thread takes ITEMS vectors; boxes of equal size share a kernel."""
        batches: dict[tuple[int, ...], list[Segment]] = {}
        for segment in segments:
            batches.setdefault(tuple(v.extent for v in segment.loops), []).append(segment)
        for extents, batch in batches.items():
            self._flat_kernel(batch, extents)

    def _flat_kernel(self, batch: list[Segment], extents: tuple[int, ...]) -> None:
        lines = Lines()
        total = 1
        for n in extents:
            total *= n
        accesses = [Access(self, s) for s in batch]
        vector = common_vector(self, accesses)
        block, items, vec = self.tune("BLOCK", list(_BLOCKS)), self.tune("ITEMS", list(_ITEMS)), vector.text
        lines.add("#pragma unroll")
        with lines.block(f"for (int k = 0; k < {items}; ++k)"):
            first = f"({self.index}(blockIdx.x) * {items} + k) * {block} + threadIdx.x"
            lines.add(f"const {self.index} j = ({first}) * {vec};")
            with lines.block(f"if (j < {total})"):
                for segment, access in zip(batch, accesses, strict=True):
                    with lines.block():
                        access.elements(lines, segment, ("j", vector), {}, {})
        self.kernel(lines, f"cdiv({total}, {block} * {items} * {vec})", block, block)

    # -- a thread per row --------------------------------------------------------------------------

    def _columns(self, nest: Nest) -> None:
        """Rows lie side by side in memory: one thread per row, neighbours read together."""
        if nest.buffers:
            raise Unsupported("a thread per row keeps no row in registers")
        lines = Lines()
        block = self.tune("BLOCK", list(_BLOCKS))
        lines.add(f"const {self.index} row = {self.index}(blockIdx.x) * {block} + threadIdx.x;")
        lines.add(f"if (row >= {nest.row_count}) return;")
        decode(lines, nest.rows, "row", self.index)
        for made in nest.passes:
            found = {r: Accumulator(r, self.plan.row_names[r]) for r in made.finished}
            for acc in found.values():
                for kind, name, start in (*acc.variables(), *acc.scratch()):
                    lines.add(f"{kind} {name} = {start};")
            for segment in made.segments:
                access = Access(self, segment)
                body = Body(lines, segment, access.scope({}, {}, flat=False))
                with lines.block():
                    body.lets(0)
                    self._loops(lines, segment.loops, body, found, 0)
            for acc in found.values():
                if acc.in_parts:
                    lines.add(f"{acc.name}_total = {acc.name}_part;")
                kind, value = acc.result()
                lines.add(f"const {kind} {acc.name} = {value};")
                if acc.reduce in self.plan.shared:
                    lines.add(f"{self.plan.shared[acc.reduce].name}[row] = {acc.name};")
        self.kernel(lines, f"cdiv({nest.row_count}, {block})", block, block)

    def _loops(
        self, lines: Lines, loops: list[Var], body: Body, found: dict[Reduce, Accumulator], depth: int
    ) -> None:
        if depth == len(loops):
            body.statements(found)
            return
        var = loops[depth]
        with lines.block(f"for ({self.index} {var.name} = {var.lo}; {var.name} < {var.hi}; ++{var.name})"):
            body.lets(depth + 1)
            self._loops(lines, loops, body, found, depth + 1)
