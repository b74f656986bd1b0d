"""What this machine's processor is: name, threads we may use, cache sizes."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

from .base import DeviceInfo

_CPUINFO: Final = Path("/proc/cpuinfo")
_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_SHOWN_FEATURES: Final = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16",
    "asimd", "sve", "bf16",
)  # fmt: skip


def default_threads() -> int:
    """Threads a kernel may use: ``OMP_NUM_THREADS``, else the processors this process is allowed on.

    A container's CPU quota (cgroup v1 and v2) counts: threads beyond it only throttle each other.
    """
    wish = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(allowed, quota) if quota else allowed)


@lru_cache(maxsize=4)
def cpu_device(threads: int) -> DeviceInfo:
    """Describe this machine for ``threads`` threads."""
    facts = _facts()
    sizes = _cache_bytes()
    name = facts.get("model name") or platform.processor() or platform.machine()
    flags = tuple((facts.get("flags") or facts.get("Features") or "").split())
    identity = "|".join([platform.system(), platform.machine(), name, str(threads), " ".join(sorted(flags))])
    return DeviceInfo(
        name=f"{name} ({threads} thread{'s' if threads != 1 else ''})",
        fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:16],
        threads=threads,
        l1_bytes=sizes.get(1, 0),
        l2_bytes=sizes.get(2, 0),
        llc_bytes=max(sizes.values(), default=0),
        memory_bytes=_memory_bytes(),
        features=tuple(f for f in _SHOWN_FEATURES if f in flags),
    )


def instruction_set() -> str:
    """Equal on machines that can run each other's ``-march=native`` code."""
    facts = _facts()
    flags = sorted((facts.get("flags") or facts.get("Features") or "").split())
    parts = [facts.get(key, "") for key in ("vendor_id", "cpu family", "model", "CPU part")]
    return "|".join([platform.machine(), *parts, *flags, platform.processor()])


@lru_cache(maxsize=1)
def _facts() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo, or sysctl's brand string on a Mac."""
    try:
        block = _CPUINFO.read_text().split("\n\n")[0]
    except OSError:
        return {"model name": _sysctl("machdep.cpu.brand_string")} if sys.platform == "darwin" else {}
    pairs = (line.split(":", 1) for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _cache_bytes() -> dict[int, int]:
    """Level -> bytes of the data cache a core sees."""
    sizes: dict[int, int] = {}
    if sys.platform == "darwin":
        for level, key in ((1, "hw.l1dcachesize"), (2, "hw.l2cachesize"), (3, "hw.l3cachesize")):
            text = _sysctl(key)
            if text.isdecimal() and int(text):
                sizes[level] = int(text)
        return sizes
    for index in sorted(_CACHES.glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            text = (index / "size").read_text().strip()
            unit = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1], 1)
            size = int(text.rstrip("KMG")) * unit
        except (OSError, ValueError):
            continue
        if kind != "Instruction":
            sizes[level] = size
    return sizes


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def _cgroup_quota() -> int:
    """CPUs of the container's quota, rounded up; 0 when there is none."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text().strip()
            period = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return 0
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return 0
    return -(-int(quota) // int(period))


def _sysctl(key: str) -> str:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", key], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
