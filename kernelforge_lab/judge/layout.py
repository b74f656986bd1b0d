"""Where every tensor of a kernel lies in the arena it shares with its runner, and what guards it.

Torch-free arithmetic. A *place* is one complete set of inputs, outputs and workspaces. The first two
places are armed: each tensor there ends (place 0) or starts (place 1) against a page that the runner
cannot touch, and inputs lie on pages it cannot write. The others are for timing: they only have canary
bands, which also keep their tensors from starting at equal offsets within a page (stores and loads 4096
bytes apart stall each other), and are as many as it takes to rotate through more memory than caches hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..kernels.region import Region
from ..kernels.spec import TensorSpec

PAGE_BYTES: Final = 4096
# torch's own alignment on the CPU; kernels may count on it, so every place keeps it.
ALIGN_BYTES: Final = 64
ARMED_PLACES: Final = 2
TIMED_PLACES_MIN: Final = 2
# Small canary bands between tensors that are not guarded by pages.
_BAND_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Geometry:
    """What memory is made of: bytes of a page that can be closed, and where packed tensors may start."""

    page_bytes: int = PAGE_BYTES
    align_bytes: int = ALIGN_BYTES
    timed_places_max: int = 96


CPU_MEMORY: Final = Geometry()


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor's storage: ``[start, start + size)`` bytes of the arena, bands left and right of it.

    ``pointer`` is the byte of the first element (storage offset included). ``band_low``/``band_high`` are
    the canary bands' outer ends.
    """

    name: str
    kind: str  # "input", "output" or "workspace"
    spec: TensorSpec
    start: int
    size: int
    band_low: int
    band_high: int

    @property
    def pointer(self) -> int:
        return self.start + self.spec.offset * self.spec.itemsize_bytes


@dataclass(frozen=True)
class Place:
    """Slots by tensor name; ``closed`` and ``read_only`` are (offset, length) page ranges for the runner."""

    slots: dict[str, Slot]
    closed: tuple[tuple[int, int], ...] = ()
    read_only: tuple[tuple[int, int], ...] = ()

    def of_kind(self, kind: str) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.kind == kind]


@dataclass(frozen=True)
class Layout:
    """All places of one kernel; ``total`` bytes of arena. ``tensors_end``: where workspaces begin."""

    places: tuple[Place, ...]
    total: int
    workspaces: tuple[tuple[str, str, int], ...] = field(default=())
    geometry: Geometry = CPU_MEMORY

    @property
    def timed(self) -> range:
        """Indices of the places that timing rotates through."""
        return range(ARMED_PLACES, len(self.places))

    @property
    def open_ranges(self) -> list[tuple[int, int]]:
        """(offset, length) of everything between closed pages."""
        ranges, cursor = [], 0
        for offset, length in sorted(r for place in self.places for r in place.closed):
            if offset > cursor:
                ranges.append((cursor, offset - cursor))
            cursor = offset + length
        if self.total > cursor:
            ranges.append((cursor, self.total - cursor))
        return ranges

    def locate(self, offset: int) -> tuple[str, str, int] | None:
        """(kind, tensor, bytes past its end or, negative, before its start) of a faulting byte.

        0 means inside the tensor. None when the byte belongs to no armed place.
        """
        best: tuple[int, Slot] | None = None
        for place in self.places[:ARMED_PLACES]:
            for slot in place.slots.values():
                distance = max(slot.start - offset, offset - (slot.start + slot.size) + 1, 0)
                if distance <= 2 * self.geometry.page_bytes and (best is None or distance < best[0]):
                    best = (distance, slot)
        if best is None:
            return None
        distance, slot = best
        return slot.kind, slot.name, -distance if offset < slot.start else distance


def storage_bytes(spec: TensorSpec) -> int:
    return (spec.offset + spec.extent) * spec.itemsize_bytes


def place_bytes(region: Region, workspaces: Sequence[tuple[str, str, int]] = ()) -> int:
    """Bytes of one place's data without guards."""
    specs = [*region.inputs, *region.outputs]
    specs += [TensorSpec.contiguous((numel,), dtype) for _, dtype, numel in workspaces]
    return sum(map(storage_bytes, specs))


def plan_layout(
    region: Region,
    workspaces: Sequence[tuple[str, str, int]],
    rotate_bytes: int,
    budget_bytes: int,
    geometry: Geometry = CPU_MEMORY,
) -> Layout:
    """Enough places to rotate through ``rotate_bytes``, but no more than ``budget_bytes`` hold."""
    each = max(1, place_bytes(region, workspaces))
    timed = min(geometry.timed_places_max, math.ceil(rotate_bytes / each), budget_bytes // each)
    count = ARMED_PLACES + max(TIMED_PLACES_MIN, timed)
    tensors = [
        *((n, "input", s) for n, s in zip(region.input_names, region.inputs, strict=True)),
        *((n, "output", s) for n, s in zip(region.output_names, region.outputs, strict=True)),
        *((n, "workspace", TensorSpec.contiguous((numel,), dtype)) for n, dtype, numel in workspaces),
    ]
    places, cursor = [], 0
    for index in range(count):
        if index < ARMED_PLACES:
            place, cursor = _armed(tensors, cursor, geometry.page_bytes, at_end=index == 0)
        else:
            place, cursor = _packed(tensors, cursor, geometry.align_bytes)
        places.append(place)
    return Layout(tuple(places), _up(cursor, geometry.page_bytes), tuple(workspaces), geometry)


def _armed(
    tensors: Sequence[tuple[str, str, TensorSpec]], cursor: int, page: int, *, at_end: bool
) -> tuple[Place, int]:
    slots, closed, read_only = {}, [], []
    for name, kind, spec in tensors:
        size = storage_bytes(spec)
        closed.append((cursor, page))
        low = cursor + page
        # One page of canaries on the side that does not touch the closed page.
        room = _up(max(size, 1), page) + page
        high = low + room
        start = high - _up(size, ALIGN_BYTES) if at_end else low
        slots[name] = Slot(name, kind, spec, start, size, low, high)
        if kind == "input":
            read_only.append((low, room))
        cursor = high
    closed.append((cursor, page))
    return Place(slots, tuple(closed), tuple(read_only)), cursor + page


def _packed(tensors: Sequence[tuple[str, str, TensorSpec]], cursor: int, align: int) -> tuple[Place, int]:
    slots = {}
    for name, kind, spec in tensors:
        size = storage_bytes(spec)
        start = _up(cursor + _BAND_BYTES, align)
        end = _up(start + size, align) + _BAND_BYTES
        slots[name] = Slot(name, kind, spec, start, size, cursor, end)
        cursor = end
    return Place(slots), cursor


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
