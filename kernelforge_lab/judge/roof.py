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


def touch_kernel_cuda(region: Region, blocks: int) -> Kernel:
    """The same on a GPU: 16 bytes a thread and step, ``blocks`` blocks of 256 threads."""
    names = [n for n in region.input_names if _is_read_whole(region, n)]
    reads = [(n, _bytes(s)) for n, s in zip(region.input_names, region.inputs, strict=True) if n in names]
    writes = [(n, _bytes(s)) for n, s in zip(region.output_names, region.outputs, strict=True)]
    args = ", ".join(name for name, _ in (*reads, *writes))
    params = ", ".join(
        [*(f"const {n.upper()}_T* {n}" for n, _ in reads), *(f"{n.upper()}_T* {n}" for n, _ in writes)]
    )
    body = [f"  total ^= kf_read({n}, {size}LL);" for n, size in reads]
    body += [f"  kf_fill({n}, {size}LL, total);" for n, size in writes]
    head = ["// forge: target cuda", f"// forge: launch touch grid=({blocks}) block=(256) args=({args})"]
    source = [*head, _TOUCH_CUDA, f'extern "C" __global__ void touch({params}) {{', "  unsigned total = 0;"]
    text = "\n".join([*source, *body, "}", ""])
    return Kernel(text, region.hash, "cuda", proposer="judge", strategy="touch")


_TOUCH_CUDA: Final = """
struct alignas(16) Sixteen { unsigned at[4]; };
// Whole 16-byte pieces of what lies at an address that need not be a multiple of 16.
__device__ inline long long kf_pieces(const void* data, long long bytes) {
  return (bytes - (16 - ((unsigned long long)data & 15)) % 16) / 16;
}
template <class T> __device__ inline T* kf_start(T* data) {
  return (T*)(((unsigned long long)data + 15) / 16 * 16);
}
__device__ inline unsigned kf_read(const void* data, long long bytes) {
  const Sixteen* from = (const Sixteen*)kf_start((const char*)data);
  const long long count = kf_pieces(data, bytes);
  unsigned total = 0;
#pragma unroll 4
  for (long long i = kf::thread_index(); i < count; i += kf::thread_count()) {
    const Sixteen piece = from[i];
    total ^= piece.at[0] ^ piece.at[1] ^ piece.at[2] ^ piece.at[3];
  }
  return total;
}
__device__ inline void kf_fill(void* data, long long bytes, unsigned total) {
  Sixteen* to = (Sixteen*)kf_start((char*)data);
  const long long count = kf_pieces(data, bytes);
#pragma unroll 4
  for (long long i = kf::thread_index(); i < count; i += kf::thread_count())
    to[i] = Sixteen{total, total, total, total};
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
