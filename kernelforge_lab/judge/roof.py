"""The physical limit: how fast this device can read every input and write every output once, and no more.

Measured by a kernel of our own, on the same places and in the same kind of process as a candidate, so that
it meets the same caches: a fixed DRAM bandwidth would call cache-resident kernels impossible.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..exc import ForgeError
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..kernels.spec import TensorSpec
from .candidate import CandidateDied

# A kernel this much faster than the limit is not believed (judging.md).
IMPOSSIBLE: Final = 0.95
# Below this the limit is the cost of starting threads, not of moving bytes.
FLOOR_MIN_US: Final = 5.0
# These read only a part of their input.
_PARTIAL: Final = frozenset(
    "slice select narrow split split_with_sizes chunk unbind index index_select gather embedding where"
    " masked_fill take diagonal tril triu unfold constant_pad_nd".split()
)
_VIEWS: Final = frozenset(
    "view _unsafe_view reshape t transpose permute expand unsqueeze squeeze alias detach as_strided".split()
)


def touch_kernel(region: Region, threads: int) -> Kernel:
    """Source that reads and writes as many bytes as the region must, and computes nothing (cpu)."""
    names = [n for n in region.input_names if _is_read_whole(region, n)]
    reads = [(n, _bytes(s)) for n, s in zip(region.input_names, region.inputs, strict=True) if n in names]
    writes = [(n, _bytes(s)) for n, s in zip(region.output_names, region.outputs, strict=True)]
    args = ", ".join(name for name, _ in (*reads, *writes))
    params = ", ".join(
        [*(f"const {n.upper()}_T* {n}" for n, _ in reads), *(f"{n.upper()}_T* {n}" for n, _ in writes)]
    )
    body = [f"    total += kf_read({n}, {size}LL, part, parts);" for n, size in reads]
    body += [f"    kf_fill({n}, {size}LL, part, parts);" for n, size in writes]
    source = "\n".join(
        [
            "// forge: target cpu",
            f"// forge: launch touch args=({args})",
            _TOUCH,
            f"void touch({params}) {{",
            "  uint64_t total = 0;",
            f"#pragma omp parallel num_threads({threads}) reduction(+ : total) if({threads} > 1)",
            "  {",
            "    const long part = omp_get_thread_num(), parts = omp_get_num_threads();",
            *body,
            "  }",
            "  kf_sink = total;",
            "}",
            "",
        ]
    )
    return Kernel(source, region.hash, "cpu", proposer="judge", strategy="touch")


_TOUCH: Final = """
#include <omp.h>
static volatile uint64_t kf_sink;
static inline long kf_cut(long bytes, long part, long parts) { return bytes * part / parts / 64 * 64; }
static inline uint64_t kf_read(const void* data, long bytes, long part, long parts) {
  const char* start = (const char*)data + kf_cut(bytes, part, parts);
  const long words = (kf_cut(bytes, part + 1, parts) - kf_cut(bytes, part, parts)) / 8;
  uint64_t total = 0;
  for (long i = 0; i < words; i++) { uint64_t w; std::memcpy(&w, start + 8 * i, 8); total += w; }
  return total;
}
static inline void kf_fill(void* data, long bytes, long part, long parts) {
  const long from = kf_cut(bytes, part, parts);
  std::memset((char*)data + from, 0x5a, kf_cut(bytes, part + 1, parts) - from);
}"""


def touch_kernels_cuda(region: Region, units: int) -> list[Kernel]:
    """The same on a GPU of ``units`` multiprocessors: 16 bytes a thread and step, reads beside writes.

    Several, because what is fastest depends on the size: one step a thread, or few blocks that loop.
    """
    names = [n for n in region.input_names if _is_read_whole(region, n)]
    reads = [(n, _bytes(s)) for n, s in zip(region.input_names, region.inputs, strict=True) if n in names]
    writes = [(n, _bytes(s)) for n, s in zip(region.output_names, region.outputs, strict=True)]
    args = ", ".join(name for name, _ in (*reads, *writes))
    params = ", ".join(
        [*(f"const {n.upper()}_T* {n}" for n, _ in reads), *(f"{n.upper()}_T* {n}" for n, _ in writes)]
    )
    most = max((size for _, size in (*reads, *writes)), default=16)
    body = [f"    total ^= kf_read({n}, {size}LL, i);" for n, size in reads]
    body += [f"    kf_write({n}, {size}LL, i, total);" for n, size in writes]
    kernels = []
    for block, blocks in (
        (256, -(-most // 4096)),
        (512, -(-most // 8192)),
        (256, 8 * units),
        (512, 4 * units),
    ):
        text = "\n".join(
            [
                "// forge: target cuda",
                f"// forge: launch touch grid=({max(1, blocks)}) block=({block}) args=({args})",
                _TOUCH_CUDA,
                f'extern "C" __global__ void __launch_bounds__({block}) touch({params}) {{',
                "#pragma unroll 4",
                f"  for (int64_t i = kf::thread_index(); i < {-(-most // 16)}LL; i += kf::thread_count()) {{",
                "    unsigned total = 0;",
                *body,
                "  }",
                "}",
                "",
            ]
        )
        kernels.append(Kernel(text, region.hash, "cuda", proposer="judge", strategy="touch"))
    return kernels


_TOUCH_CUDA: Final = """
struct alignas(16) Sixteen { unsigned at[4]; };
// The i-th whole 16-byte piece of what lies at an address that need not be a multiple of 16.
template <class T> __device__ inline T* kf_piece(T* data, long long bytes, long long i) {
  const unsigned long long start = ((unsigned long long)data + 15) / 16 * 16;
  const unsigned long long end = (unsigned long long)data + bytes;
  return start + 16 * (i + 1) <= end ? (T*)(start + 16 * i) : nullptr;
}
__device__ inline unsigned kf_read(const void* data, long long bytes, long long i) {
  const char* at = kf_piece((const char*)data, bytes, i);
  if (at == nullptr) return 0;
  const Sixteen piece = *(const Sixteen*)at;
  return piece.at[0] ^ piece.at[1] ^ piece.at[2] ^ piece.at[3];
}
__device__ inline void kf_write(void* data, long long bytes, long long i, unsigned total) {
  char* at = kf_piece((char*)data, bytes, i);
  if (at != nullptr) *(Sixteen*)at = Sixteen{total, total, total, total};
}"""


def measure_floor_us(kernels: list[Kernel], fastest_s: Callable[[Kernel], float]) -> float:
    """Shortest time (µs) of any of the touch kernels; 0 when none could be run."""
    times = []
    for kernel in kernels:
        with suppress(ForgeError, CandidateDied):
            times.append(fastest_s(kernel) * 1e6)
    return min(times, default=0.0)


def is_impossible(kernel_us: float, floor_us: float) -> bool:
    return floor_us > FLOOR_MIN_US and kernel_us < IMPOSSIBLE * floor_us


def _is_read_whole(region: Region, name: str) -> bool:
    """Whether every element of a value is surely needed."""
    for op in region.ops:
        if name not in {ref.split(".")[0] for ref in op.refs()}:
            continue
        if op.short_name in _VIEWS and not op.is_tuple:
            if _is_read_whole(region, op.name):
                return True
        elif op.short_name not in _PARTIAL:
            return True
    return name in region.results


def _bytes(spec: TensorSpec) -> int:
    return min(spec.distinct_numel, spec.extent) * spec.itemsize_bytes
