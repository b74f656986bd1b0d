"""Device memory that two processes map alike, with holes between tensors that neither can touch.

CUDA's virtual memory calls: each open range is one allocation that travels as a file descriptor; the
addresses between ranges are reserved and never backed, so that touching one is a fault.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

# Granularity of device allocations on every GPU so far; asked for, and refused when it is more.
PAGE_BYTES: Final = 2 * 2**20

Ranges = Sequence[tuple[int, int]]


class SharedMemory:
    """``base`` is the address of byte 0; only ``ranges``, as (offset, bytes), can be touched.

    ``fds`` are the descriptors of the ranges, for the other process. Raises MemoryError when the device is
    full, OSError for anything else that the driver refuses.
    """

    def __init__(self, index: int, total_bytes: int, ranges: Ranges, fds: Sequence[int] = ()) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._index = index
        self._mapped: list[tuple[int, int]] = []
        self._handles: list[Any] = []
        self.fds: list[int] = []
        self.base = 0
        _done(driver.cuInit(0))
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        place = driver.CUmemLocation()
        place.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        place.id = index
        wish = driver.CUmemAllocationProp()
        wish.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wish.requestedHandleTypes = kind
        wish.location = place
        access = driver.CUmemAccessDesc()
        access.location = place
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._total_bytes = -(-max(total_bytes, 1) // PAGE_BYTES) * PAGE_BYTES
        self._address = _done(driver.cuMemAddressReserve(self._total_bytes, PAGE_BYTES, 0, 0))
        self.base = int(self._address)
        try:
            if not fds and (not ranges or ranges[0][0] >= PAGE_BYTES):
                # torch takes an address only if something is there: a page that nobody else maps.
                self._back(0, PAGE_BYTES, _done(driver.cuMemCreate(PAGE_BYTES, wish, 0)), access)
            for i, (offset, size) in enumerate(ranges):
                if fds:
                    handle = _done(driver.cuMemImportFromShareableHandle(fds[i], kind))
                else:
                    handle = _done(driver.cuMemCreate(size, wish, 0))
                self._back(offset, size, handle, access)
                if not fds:
                    self.fds.append(int(_done(driver.cuMemExportToShareableHandle(handle, kind, 0))))
        except (OSError, MemoryError):
            self.close()
            raise

    def _back(self, offset: int, size: int, handle: Any, access: Any) -> None:
        driver, address = self._driver, self.base + offset
        self._handles.append(handle)
        _done(driver.cuMemMap(address, size, 0, handle, 0))
        self._mapped.append((address, size))
        _done(driver.cuMemSetAccess(address, size, [access], 1))

    def close_fds(self) -> None:
        """No other process will map it from now on."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def close(self) -> None:
        """Unmap; what still points there faults. The memory is free when the other process is done too."""
        driver = self._driver
        if self._mapped:
            driver.cuCtxSynchronize()  # nothing may still be running on it
        for address, size in self._mapped:
            driver.cuMemUnmap(address, size)
        for handle in self._handles:
            driver.cuMemRelease(handle)
        if self.base:
            driver.cuMemAddressFree(self._address, self._total_bytes)
        self.close_fds()
        self._mapped, self._handles, self.base = [], [], 0

    def __del__(self) -> None:
        self.close()


def _done(result: Any) -> Any:
    """What a driver call returns besides its status."""
    status, *values = result
    if int(status) != 0:
        if status.name == "CUDA_ERROR_OUT_OF_MEMORY":
            raise MemoryError("the GPU has too little free memory")
        raise OSError(f"the CUDA driver said {status.name}")
    return values[0] if values else None
