"""A kernel's workspaces in host memory."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from typing import Final

ALIGN_BYTES: Final = 64


class Scratch:
    """All workspaces in one anonymous mapping, each 64-byte aligned; memory is taken when touched.

    ``addresses`` keeps the order of ``sizes_bytes`` and is valid as long as the object lives.
    """

    def __init__(self, sizes_bytes: Mapping[str, int]) -> None:
        offsets, total = {}, 0
        for name, size in sizes_bytes.items():
            offsets[name] = total
            total += -(-max(size, 1) // ALIGN_BYTES) * ALIGN_BYTES
        self.addresses: dict[str, int] = {}
        if offsets:
            self._memory = mmap.mmap(-1, total)
            base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
            self.addresses = {name: base + offset for name, offset in offsets.items()}
