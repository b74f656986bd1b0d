"""What this device can do at most, and what a region therefore must take at least."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..kernels.region import Op, Region
from ..kernels.spec import TensorSpec
from .workload import Roofs

# Working sets from cache-resident to memory-bound; a triad moves three arrays of a third of these.
_SET_BYTES: Final = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
_MATMUL: Final = 1024
_REPEAT_S: Final = 0.08
# Seen again, the machine may exceed its kept limits by this before they are taken anew.
_BEATEN: Final = 1.3
_VERSION: Final = 2  # of the cached file's meaning


def floor_us(region: Region, roofs: Roofs) -> float:
    """Least time in µs: bytes at the bandwidth of a working set of that size, or flops at the peak."""
    moved = bytes_moved(region)
    memory_us = moved / (roofs.bandwidth_at(moved) * 1e3)
    gflops = max(roofs.gflops, roofs.half_gflops) if _multiplies_halves(region) else roofs.gflops
    return max(memory_us, flops(region) / (gflops * 1e3))


def bytes_moved(region: Region) -> int:
    """Each input's elements that are really read, once; each output's written, once.

    An input read only through views inside the region (a slice) counts what those views hold.
    """
    reads: dict[str, list[TensorSpec | None]] = {name: [] for name in region.input_names}
    for op in region.ops:
        for name in op.refs():
            if name in reads:
                is_slice = op.short_name in ("slice", "select")
                reads[name].append(op.outs[0] if is_slice else None)
    total = 0
    for name, spec in zip(region.input_names, region.inputs, strict=True):
        parts = [spec if part is None else part for part in reads[name]]
        total += min(spec.bytes_touched, sum(part.bytes_touched for part in parts))
    return total + sum(spec.bytes_touched for spec in region.outputs)


def flops(region: Region) -> int:
    """One operation per element produced or reduced: a lower bound, whatever the function costs."""
    specs = region.specs
    return sum(_op_flops(op, specs) for op in region.ops)


_MATMULS: Final = frozenset("mm bmm addmm baddbmm _grouped_mm convolution".split())


def _multiplies_halves(region: Region) -> bool:
    """Whether its matrix products may use the units for 16-bit numbers."""
    made = [spec for op in region.ops if op.short_name in _MATMULS for spec in op.outs if spec is not None]
    return any(spec.dtype in ("bfloat16", "float16") for spec in made)


_FREE: Final = frozenset(
    """
    view _unsafe_view reshape t transpose permute unsqueeze squeeze expand slice select alias detach split
    split_with_sizes unbind chunk diagonal _to_copy clone copy lift_fresh_copy full full_like zeros zeros_like
    ones ones_like scalar_tensor new_zeros new_ones new_full arange cat stack constant_pad_nd
    slice_scatter select_scatter tril triu repeat flip upsample_nearest2d
    """.split()
)


def _op_flops(op: Op, specs: dict[str, TensorSpec]) -> int:
    if op.short_name in _FREE:
        return 0
    made = max((spec.numel for spec in op.outs if spec is not None), default=0)
    if op.short_name in ("mm", "bmm", "addmm", "baddbmm", "_grouped_mm"):
        first = specs[next(iter(op.refs()))] if op.short_name in ("mm", "bmm") else specs[list(op.refs())[1]]
        return 2 * made * first.shape[-1]
    if op.short_name == "convolution":
        weight = specs[list(op.refs())[1]]
        return 2 * made * (weight.numel // max(weight.shape[0], 1))
    return max([made, *(specs[name].numel for name in op.refs() if name in specs)])


def measure(threads: int | None = None, target: str = "cpu") -> Roofs:
    """Roofs of the cpu with torch's threads, or of the current GPU; once per device, then from disk."""
    import torch

    name = fingerprint(threads or torch.get_num_threads()) if target == "cpu" else fingerprint_cuda()
    path = cache_folder() / f"roofs-{name}.json"
    known = _read(path)
    if known is not None and (target != "cpu" or not _is_beaten(known)):
        return known
    roofs = _measure() if target == "cpu" else _measure_cuda()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(roofs.as_json()))
        partial.replace(path)
    except OSError:
        pass  # a read-only home costs a second per run, nothing else
    return roofs


def _read(path: Path) -> Roofs | None:
    try:
        return Roofs.from_json(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_beaten(known: Roofs) -> bool:
    """Whether the machine is visibly faster than the kept limits: they were taken while it was busy.

    A limit that is too low would call stock unbeatable, and that for good.
    """
    import torch

    with torch.no_grad():
        return _triad_gbps(_SET_BYTES[-1], torch) > _BEATEN * known.bandwidth_gbps


def _triad_gbps(size: int, torch: Any) -> float:
    """Bandwidth in GB/s of a = b + 2·c over three arrays of ``size`` bytes together."""
    a, b, c = (torch.ones(size // 12) for _ in range(3))
    return float(size / _best_s(lambda: torch.add(b, c, alpha=2.0, out=a)) / 1e9)


def fingerprint(threads: int) -> str:
    """Stable id of the CPU model, thread count and torch build."""
    return _hash(platform.machine(), _cpu_name(), str(threads))


def fingerprint_cuda() -> str:
    """Stable id of the current GPU, its driver and the torch build. Raises NoDeviceError."""
    import torch

    from ..targets.cuda_device import device_info

    return _hash("cuda", device_info(torch.cuda.current_device()).fingerprint)


def _hash(*words: str) -> str:
    import torch

    return hashlib.sha256("\0".join([*words, torch.__version__, str(_VERSION)]).encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """``$KERNELFORGE_CACHE``, or this user's cache folder."""
    import platformdirs

    chosen = os.environ.get("KERNELFORGE_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("kernelforge-lab"))


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _measure() -> Roofs:
    import torch

    with torch.no_grad():
        curve = [(size, _triad_gbps(size, torch)) for size in _SET_BYTES]
        curve = falling(curve)
        x, y = torch.ones(_MATMUL, _MATMUL), torch.ones(_MATMUL, _MATMUL)
        out = torch.empty(_MATMUL, _MATMUL)
        gflops = 2 * _MATMUL**3 / _best_s(lambda: torch.mm(x, y, out=out)) / 1e9
        tiny = torch.ones(1)
        call_us = _best_s(lambda: torch.neg(tiny)) * 1e6
    return Roofs(curve[-1][1], gflops, call_us, tuple(curve))


def _measure_cuda() -> Roofs:
    from . import roofs_cuda

    return roofs_cuda.measure()


def falling(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """A smaller set is never slower for a good kernel; torch's own call overhead says so at 256 KiB."""
    for i in range(len(curve) - 2, -1, -1):
        curve[i] = (curve[i][0], max(curve[i][1], curve[i + 1][1]))
    return curve


def _best_s(call: Callable[[], object]) -> float:
    call()
    best, end = float("inf"), time.perf_counter() + _REPEAT_S
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best
