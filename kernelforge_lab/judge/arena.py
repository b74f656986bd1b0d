"""The memory a kernel is tried in: shared with its runner, poisoned, fenced by canaries. Needs torch."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .layout import ARMED_PLACES, Layout, Place, Slot

if TYPE_CHECKING:
    import torch

CANARY: Final = 0xC3
# A is NaN in every floating dtype and -1 in integers; B is a large finite number (1.5e16 in float32).
POISONS: Final = (0xFF, 0x5A)
# Thread stacks, the interpreter and the C libraries need about 0.6 GiB of address space on 2 threads.
_SPARE_ADDRESS_BYTES: Final = 2 * 2**30
_CPU_LIMIT_S: Final = 600


class Arena:
    """All places of a layout in memory that a runner can map too, as one torch tensor of bytes.

    ``fds`` and ``opening`` are what a runner needs to map it. Subclasses say where the memory is.
    """

    bytes: torch.Tensor
    fds: list[int]

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._allocate(layout)
        for place in layout.places:
            self.repair_bands(place)

    def _allocate(self, layout: Layout) -> None:
        """Set ``bytes`` and ``fds``."""
        raise NotImplementedError

    @property
    def opening(self) -> dict[str, Any]:
        """Fields of the runner's ``open`` command, besides the descriptors."""
        raise NotImplementedError

    def settle(self) -> None:
        """Until what was written here can be seen by another process."""

    def close(self) -> None:
        """Give the descriptors back; the memory lives as long as torch views on it do."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def raw(self, slot: Slot) -> torch.Tensor:
        """The slot's storage as bytes."""
        return self.bytes[slot.start : slot.start + slot.size]

    def tensor(self, slot: Slot) -> torch.Tensor:
        """The slot as the tensor that its spec describes."""
        import torch

        from ..kernels.execution import torch_dtype

        spec = slot.spec
        flat = (
            self.raw(slot).view(torch_dtype(spec.dtype))
            if slot.size
            else torch.empty(0, dtype=torch_dtype(spec.dtype), device=self.bytes.device)
        )
        # as_strided counts its offset from the start of the storage, which is the whole arena.
        offset = flat.storage_offset() + spec.offset
        return flat.as_strided(spec.shape, spec.strides, offset) if slot.size else flat.view(spec.shape)

    def write_inputs(self, place: Place, storages: Sequence[torch.Tensor]) -> None:
        """Copy input storages (uint8) into a place."""
        for slot, data in zip(place.of_kind("input"), storages, strict=True):
            self.raw(slot).copy_(data)

    def poison(self, place: Place, pattern: int, *, kinds: tuple[str, ...] = ("output", "workspace")) -> None:
        for kind in kinds:
            for slot in place.of_kind(kind):
                self.raw(slot).fill_(pattern)

    def changed_input(self, place: Place, storages: Sequence[torch.Tensor]) -> tuple[Slot, int] | None:
        """The first input that no longer equals ``storages`` and the byte where it differs."""
        for slot, data in zip(place.of_kind("input"), storages, strict=True):
            raw = self.raw(slot)
            if not equal_bytes(raw, data):
                return slot, int((raw != data).nonzero()[0])
        return None

    def broken_band(self, place: Place) -> tuple[Slot, int] | None:
        """The first tensor whose guard band was written, and by how many bytes outside (negative: before)."""
        for slot in place.slots.values():
            for low, high in _bands(slot):
                if high <= low:
                    continue
                wrong = self.bytes[low:high] != CANARY
                if bool(wrong.any()):
                    at = low + int(wrong.nonzero()[0])
                    if at < slot.start:
                        at = low + int(wrong.nonzero()[-1])
                        return slot, at - slot.start
                    return slot, at - (slot.start + slot.size) + 1
        return None

    def repair_bands(self, place: Place) -> None:
        for slot in place.slots.values():
            for low, high in _bands(slot):
                self.bytes[low:high] = CANARY


class HostArena(Arena):
    """A memfd. The checker's own mapping has no closed pages: only the runner meets them."""

    def _allocate(self, layout: Layout) -> None:
        import torch

        fd = os.memfd_create("kernelforge-arena")
        self.fds = [fd]
        os.ftruncate(fd, max(layout.total, 1))
        self._map = mmap.mmap(fd, max(layout.total, 1))
        self.bytes = torch.frombuffer(self._map, dtype=torch.uint8)

    @property
    def opening(self) -> dict[str, Any]:
        armed = self.layout.places[:ARMED_PLACES]
        return {
            "size": self.layout.total,
            "closed": [r for place in armed for r in place.closed],
            "read_only": [r for place in armed for r in place.read_only],
            "memory_bytes": _SPARE_ADDRESS_BYTES + self.layout.total,
            "cpu_s": _CPU_LIMIT_S,
        }


def equal_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bitwise equality of two byte tensors; eight bytes at a time (torch compares bytes 8x slower)."""
    import torch

    whole = a.numel() // 8 * 8
    words = torch.int64
    return torch.equal(a[:whole].view(words), b[:whole].view(words)) and torch.equal(a[whole:], b[whole:])


def _bands(slot: Slot) -> tuple[tuple[int, int], tuple[int, int]]:
    return (slot.band_low, slot.start), (slot.start + slot.size, slot.band_high)
