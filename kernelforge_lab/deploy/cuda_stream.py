"""A cuda kernel launched where the caller's work is: on their device, their stream, in their graph capture.

PyCUDA cannot use a stream that torch made. On the default stream nothing is needed; any other one is joined
from a stream of PyCUDA's by two events, which CUDA-graph capture follows too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import torch

from ..kernels.execution import torch_dtype
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..targets.base import Built
from ..targets.cuda import CudaTarget
from ..targets.cuda_device import driver, entered, make_current

_NON_BLOCKING: Final = 1  # CU_STREAM_NON_BLOCKING: does not wait for the default stream by itself


class CudaLaunch:
    """A kernel as a callable of addresses (inputs, then outputs) that returns at once.

    Built and loaded once per device, on the first call there. Raises what building or launching raises.
    """

    def __init__(self, kernel: Kernel, region: Region) -> None:
        self._kernel = kernel
        self._region = region
        self._lock = threading.Lock()
        self._loaded: dict[int, _OnDevice] = {}
        # Now, not in the first call: that one may be under capture, where nothing can be allocated.
        here = self._load(torch.cuda.current_device())
        self.call = self._with_scratch(here.scratch) if here.scratch else self._plain()

    def _with_scratch(self, specs: Sequence[tuple[int, torch.dtype]]) -> Callable[..., None]:
        """Workspaces from torch's allocator, which keeps calls on several streams and graphs apart."""
        inner, empty = self._plain(), torch.empty

        def launch(*pointers: int) -> None:
            scratch = [empty(numel, dtype=dtype, device="cuda") for numel, dtype in specs]
            inner(*pointers, *[memory.data_ptr() for memory in scratch])

        return launch

    def _plain(self) -> Callable[..., None]:
        device, stream = torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream
        loaded, load = self._loaded, self._load

        def launch(*pointers: int) -> None:
            index = device()
            here = loaded.get(index) or load(index)
            if stream(index):
                here.forked(pointers)
            else:
                try:
                    here.direct(*pointers)
                except here.refused as error:
                    here.again(error, pointers)

        return launch

    def _load(self, index: int) -> _OnDevice:
        with self._lock:
            if index not in self._loaded:
                target = CudaTarget(index=index)
                self._loaded[index] = _OnDevice(target, target.build(self._kernel, self._region))
            return self._loaded[index]


# PyCUDA's stream, torch's view of it, and the events of fork and join.
_Side: TypeAlias = "tuple[Any, torch.cuda.Stream, torch.cuda.Event, torch.cuda.Event]"


class _Lease:
    """A thread's own side stream, which outlives it for the next one: PyCUDA cannot destroy it there."""

    def __init__(self, idle: list[_Side], side: _Side) -> None:
        self._idle = idle
        self.side = side

    def __del__(self) -> None:
        self._idle.append(self.side)


class _OnDevice:
    """The kernel loaded on one device. ``direct`` launches on the default stream."""

    def __init__(self, target: CudaTarget, built: Built) -> None:
        launcher = target.load(built)
        order = (*built.tensors, *(name for name, _, _ in built.plan.workspaces))
        self.scratch = [(max(numel, 1), torch_dtype(dtype)) for _, dtype, numel in built.plan.workspaces]
        self.direct = launcher.bind_names(order)
        self.refused: type[Exception] = driver().LogicError
        self._on_stream = launcher.bind_stream(order)
        self._index = target.index
        self._local = threading.local()
        self._idle: list[_Side] = []
        self._local.lease = _Lease(self._idle, self._side())

    def again(self, error: Exception, pointers: Sequence[int]) -> None:
        """A thread that has not used CUDA yet has no current context: give it one, and launch."""
        if "context" not in str(error):
            raise error
        make_current(self._index)
        self.direct(*pointers)

    def forked(self, pointers: Sequence[int]) -> None:
        """On PyCUDA's stream, after what the caller's stream has so far and before what comes next on it."""
        try:
            side, outer, fork, join = self._local.lease.side
        except AttributeError:
            self._local.lease = _Lease(self._idle, self._idle.pop() if self._idle else self._side())
            side, outer, fork, join = self._local.lease.side
        current = torch.cuda.current_stream(self._index)
        fork.record(current)
        outer.wait_event(fork)
        self._on_stream(side, *pointers)
        join.record(outer)
        current.wait_event(join)

    def _side(self) -> _Side:
        with entered(self._index):
            side = driver().Stream(_NON_BLOCKING)
        outer = torch.cuda.ExternalStream(side.handle, device=self._index)
        return side, outer, torch.cuda.Event(), torch.cuda.Event()
