"""NVIDIA GPUs as PyCUDA sees them: found, named, entered through the context that torch uses too."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Final

from ..exc import NoDeviceError
from .base import DeviceInfo

INSTALL: Final = "pip install 'kernelforge-lab[cuda]'"


def has_driver() -> bool:
    """Whether CUDA's driver library is here at all."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@lru_cache(maxsize=1)
def driver() -> Any:
    """``pycuda.driver``, initialised. Raises NoDeviceError that says what is missing."""
    if not has_driver():
        raise NoDeviceError(
            "There is no NVIDIA driver on this machine.",
            "The cpu target needs none; --target cuda --arch sm_90 compiles without running.",
        )
    try:
        import pycuda.driver as cuda
    except ImportError as error:
        raise NoDeviceError(f"PyCUDA cannot be imported ({error}).", f"Install it with: {INSTALL}.") from None
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise NoDeviceError(f"The NVIDIA driver does not start: {error}.", "Does nvidia-smi work?") from None
    if count == 0:
        raise NoDeviceError("The NVIDIA driver sees no GPU.", "Is CUDA_VISIBLE_DEVICES set to nothing?")
    return cuda


def device_info(index: int = 0) -> DeviceInfo:
    """GPU ``index`` of this process. Raises NoDeviceError."""
    cuda = driver()
    device = cuda.Device(index)
    facts = cuda.device_attribute
    name, arch = device.name(), device_arch(index)
    units = device.get_attribute(facts.MULTIPROCESSOR_COUNT)
    l2_bytes = device.get_attribute(facts.L2_CACHE_SIZE)
    words = [name, arch, str(units), str(l2_bytes), str(cuda.get_driver_version())]
    return DeviceInfo(
        name=name,
        fingerprint=hashlib.sha256("\0".join(words).encode()).hexdigest()[:12],
        threads=units,
        l2_bytes=l2_bytes,
        llc_bytes=l2_bytes,
        memory_bytes=device.total_memory(),
        features=(arch,),
    )


def absent_device(arch: str) -> DeviceInfo:
    """Stands for a GPU that is not here: kernels are compiled for ``arch`` and not run."""
    return DeviceInfo(f"no GPU, compiling for {arch}", f"absent-{arch}", 1, features=(arch,))


def device_arch(index: int = 0) -> str:
    """``sm_90`` and the like. Raises NoDeviceError."""
    major, minor = driver().Device(index).compute_capability()
    return f"sm_{major}{minor}"


def clock_hz(index: int = 0) -> int:
    """The fastest a multiprocessor runs."""
    cuda = driver()
    return int(cuda.Device(index).get_attribute(cuda.device_attribute.CLOCK_RATE)) * 1000


@cache
def _primary(index: int) -> Any:
    return driver().Device(index).retain_primary_context()


def make_current(index: int) -> None:
    """Make the primary context current on this thread, as the CUDA runtime does at its first call there.

    Behind PyCUDA's back: a thread that ends with a context on PyCUDA's own stack aborts the process.
    """
    ctypes.CDLL("libcuda.so.1").cuCtxSetCurrent(ctypes.c_void_p(_primary(index).handle))


@contextmanager
def entered(index: int) -> Iterator[Any]:
    """Inside, the device's primary context (torch's own) is current for PyCUDA on this thread.

    PyCUDA wants that to load and to allocate. Launching only needs what torch has made current already.
    """
    context = _primary(index)
    context.push()
    try:
        yield context
    finally:
        context.pop()
