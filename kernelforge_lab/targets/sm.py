"""What a streaming multiprocessor holds, and how many blocks of a kernel therefore fit on one.

CUDA Programming Guide, "Compute Capabilities"; register and shared memory granularity from NVIDIA's
occupancy calculator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

REGISTERS: Final = 65536
_WARP: Final = 32
_REGISTER_UNIT: Final = 256  # per warp
_SHARED_UNIT: Final = 128
# A multiprocessor has four schedulers, each with a quarter of the registers.
_SCHEDULERS: Final = 4


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Limits of one SM; bytes of shared memory. ``reserved_bytes`` is what the system takes per block."""

    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    reserved_bytes: int = 1024


_KIB: Final = 1024
_TABLE: Final = {
    75: Multiprocessor(1024, 16, 64 * _KIB, 64 * _KIB, 0),
    80: Multiprocessor(2048, 32, 164 * _KIB, 163 * _KIB),
    86: Multiprocessor(1536, 16, 100 * _KIB, 99 * _KIB),
    87: Multiprocessor(1536, 16, 164 * _KIB, 163 * _KIB),
    88: Multiprocessor(1536, 16, 100 * _KIB, 99 * _KIB),
    89: Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
    90: Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    100: Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    103: Multiprocessor(2048, 32, 228 * _KIB, 227 * _KIB),
    110: Multiprocessor(1536, 24, 228 * _KIB, 227 * _KIB),
    120: Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
    121: Multiprocessor(1536, 24, 100 * _KIB, 99 * _KIB),
}


def number(arch: str) -> int | None:
    """90 of ``sm_90`` or ``sm_90a``; None when it is no such name."""
    match = re.fullmatch(r"sm_(\d{2,3})[af]?", arch)
    return int(match[1]) if match else None


def multiprocessor(arch: str) -> Multiprocessor:
    """Limits of an SM; one that is newer than this table is taken for its nearest older relative."""
    wanted = number(arch) or 90
    return _TABLE[max((known for known in _TABLE if known <= wanted), default=75)]


def blocks_per_sm(arch: str, threads: int, registers: int, shared_bytes: int) -> int:
    """Blocks of ``threads`` that are resident on one SM at once; 0 when not even one fits.

    ``registers`` per thread; ``shared_bytes`` per block, static and dynamic.
    """
    limits = multiprocessor(arch)
    warps = -(-threads // _WARP)
    by_registers = limits.blocks
    if registers:
        each = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        by_registers = REGISTERS // _SCHEDULERS // each * _SCHEDULERS // warps
    by_shared = limits.blocks
    if shared_bytes > limits.block_shared_bytes:
        return 0
    block_bytes = -(-(shared_bytes + limits.reserved_bytes) // _SHARED_UNIT) * _SHARED_UNIT
    if shared_bytes:
        by_shared = limits.shared_bytes // block_bytes
    return min(limits.blocks, limits.threads // (warps * _WARP), by_registers, by_shared)


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> float:
    """Share of an SM's threads that are resident, 0 to 1."""
    resident = blocks_per_sm(arch, threads, registers, shared_bytes) * threads
    return resident / multiprocessor(arch).threads
