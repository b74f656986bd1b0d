"""What an LLM is asked to try, by what limits the region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MEMORY: Final = "memory"
COMPUTE: Final = "compute"
LATENCY: Final = "latency"
_ALL: Final = (MEMORY, COMPUTE, LATENCY)

FROM_SCRATCH: Final = "from scratch"


@dataclass(frozen=True)
class Tactic:
    """A line of a menu: its name (the search's strategy) and what the prompt says about it."""

    name: str
    text: str
    bottlenecks: tuple[str, ...] = _ALL
    targets: tuple[str, ...] = ("cpu", "cuda")


# Most promising first within each bottleneck (search.md).
TACTICS: Final = (
    Tactic(
        "one pass",
        "Touch memory once: read every input one time and write every output one time. Reduce "
        "online (Welford, running maximum with rescaled sum), or keep the row in registers, L1 or"
        " shared memory between passes.",
        (MEMORY,),
    ),
    Tactic(
        "explicit vectors",
        "Write the hot loop with explicit SIMD: __m512/__m256 intrinsics or GCC vector "
        "extensions, several independent accumulators, unrolled so that loads, arithmetic and "
        "stores of different iterations overlap.",
        targets=("cpu",),
    ),
    Tactic(
        "wider accesses",
        "16-byte loads and stores (float4, uint4) per thread, several in flight before the first "
        "is used; neighbouring threads touch neighbouring addresses.",
        (MEMORY, LATENCY),
        ("cuda",),
    ),
    Tactic(
        "cheaper arithmetic",
        "Spend fewer instructions per element: shorter polynomials that still meet the error "
        "bound, reciprocals instead of divisions, one exp instead of several, fused multiply-"
        "adds, work hoisted out of the inner loop.",
        (COMPUTE, MEMORY),
    ),
    Tactic(
        "better split of work",
        "Change how the work is divided: more or fewer rows per thread or block, several rows at "
        "once so that reductions interleave, chunks that fit L2, no false sharing, no idle "
        "threads at the end.",
    ),
    Tactic(
        "streaming stores",
        "Outputs that nobody reads soon should not evict inputs: non-temporal stores, software "
        "prefetch of the next row, large pages of sequential access per thread.",
        (MEMORY,),
        ("cpu",),
    ),
    Tactic(
        "one block per row, warp reductions",
        "Reduce with warp shuffles and one shared-memory step; a warp per short row, a block (or "
        "cluster) per long row.",
        (MEMORY, LATENCY),
        ("cuda",),
    ),
    Tactic(
        "async copies",
        "Hide latency by a pipeline: cp.async or TMA into shared memory, two or more stages, a "
        "persistent grid of as many blocks as there are SMs.",
        (MEMORY, COMPUTE),
        ("cuda",),
    ),
    Tactic(
        "tensor cores",
        "Use mma or wgmma instructions with swizzled shared memory, so that the multiply-adds do "
        "not run on the scalar pipes.",
        (COMPUTE,),
        ("cuda",),
    ),
    Tactic(
        "instruction-level parallelism",
        "More independent work per thread: unroll, keep several accumulators, break dependency "
        "chains, use restrict and compile-time sizes, avoid branches in the inner loop.",
        (COMPUTE, LATENCY),
    ),
    Tactic(
        "fewer launches, less overhead",
        "The tensors are small: one launch (one parallel region), as little setup as possible; on"
        " the cpu a single thread may be faster than waking all of them.",
        (LATENCY,),
    ),
    Tactic(
        "your own idea",
        "Look at the region as a whole and do what you think matters most, including algebraic "
        "simplification, another order of loops, or a different algorithm. Say in one line why it"
        " should be faster.",
    ),
)
BY_NAME: Final = {tactic.name: tactic for tactic in TACTICS}

# A fresh start is one move at the root: everything else improves a proven kernel.
_OTHER: Final = {
    FROM_SCRATCH: "Write the whole kernel from nothing, in the way you think fits this region best.",
    "repair": "The judge found the parent wrong, as said above. Keep its idea and repair it.",
}


def menu(target: str, bottleneck: str, *, has_parent: bool) -> tuple[str, ...]:
    """Names of what to try; at the root only a fresh start."""
    if not has_parent:
        return (FROM_SCRATCH,)
    fitting = (t for t in TACTICS if target in t.targets)
    return tuple(t.name for t in fitting if not bottleneck or bottleneck in t.bottlenecks)


def text_of(strategy: str) -> str:
    tactic = BY_NAME.get(strategy)
    return tactic.text if tactic else _OTHER.get(strategy, "")
