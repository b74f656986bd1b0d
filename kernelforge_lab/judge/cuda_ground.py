"""The ground of the cuda target: device memory shared with runners, event clocks, reused processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..targets.base import DeviceInfo, Target
from ..targets.cuda_delay import build_delay
from ..targets.cuda_device import clock_hz
from ..targets.cuda_memory import PAGE_BYTES, SharedMemory
from . import roof
from .arena import Arena
from .candidate import Candidate, RunnerProcess
from .layout import Geometry, Layout
from .statistics import median
from .timing import CandidateSide, Side, StockSide

if TYPE_CHECKING:
    import torch

_SCRIPT: Final = Path(__file__).with_name("cuda_runner.py")
_ENVIRONMENT: Final = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "HOME")
# torch's own allocations start at multiples of 512 bytes. 400 places of 0.5 MB still leave an L2 of 60 MB.
_GEOMETRY: Final = Geometry(PAGE_BYTES, 512, 400)
_ROTATE_CACHES: Final = 3
# Of the memory that is free when a region is first judged.
_MEMORY_SHARE: Final = 0.4
_DELAY_SPARE: Final = 1.5
_DELAY_MIN_S: Final = 40e-6
_DELAY_MAX_S: Final = 0.05
_TRIES: Final = 3
_EMPTY_BLOCKS: Final = 15
# More launches than about a thousand do not fit the driver's queue; eager has several a call.
_STOCK_CALLS_MAX: Final = 100
_CANDIDATE_CALLS_MAX: Final = 600


class CudaGround:
    """One GPU. A runner whose kernel did nothing wrong serves the next one too (a context takes 0.5 s)."""

    torch_device = "cuda"
    geometry = _GEOMETRY

    def __init__(self, target: Target, device: DeviceInfo) -> None:
        import torch

        torch.cuda.init()
        self._device = device
        self.lock_name = f"cuda-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        self._delay = build_delay(target).path
        self.rotate_bytes = _ROTATE_CACHES * max(device.l2_bytes, PAGE_BYTES)
        self._idle: list[RunnerProcess] = [self._start(), self._start()]

    def arena(self, layout: Layout) -> Arena:
        return DeviceArena(layout, self._delay)

    def take_runner(self, *, fresh: bool = False) -> RunnerProcess:
        if fresh:
            return self._start()
        runner = self._idle.pop(0) if self._idle else self._start()
        if not self._idle:
            self._idle.append(self._start())
        return runner

    def give_back(self, runner: RunnerProcess, *, clean: bool) -> None:
        if clean and len(self._idle) < 2:
            self._idle.insert(0, runner)
        else:
            runner.kill()

    def wait_ready(self) -> None:
        for runner in self._idle:
            runner.wait_ready()

    def stock_side(self, function: Callable[..., Sequence[torch.Tensor]], arena: Arena) -> Side:
        return CudaStockSide(function, arena)

    def candidate_side(self, candidate: Candidate, timed: range) -> Side:
        return CudaCandidateSide(candidate, timed)

    def touch_kernels(self, region: Region) -> list[Kernel]:
        return roof.touch_kernels_cuda(region, self._device.threads)

    @contextmanager
    def threads(self) -> Iterator[None]:
        yield

    def stock_modes(self) -> dict[str, dict[str, Any]]:
        return {"compiled": {}, "max-autotune": {"max_autotune": True, "coordinate_descent_tuning": True}}

    def call_overhead_s(self, region: Region, inputs: Sequence[torch.Tensor]) -> float | None:  # noqa: ARG002
        return None

    def memory_bytes(self, wish: int) -> int:
        import torch

        free, _ = torch.cuda.mem_get_info()
        return max(wish, int(free * _MEMORY_SHARE))

    def close(self) -> None:
        for runner in self._idle:
            runner.kill()

    def _start(self) -> RunnerProcess:
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        return RunnerProcess(1, script=_SCRIPT, environment=kept, paths=paths)


class DeviceArena(Arena):
    """Device memory that the runner maps too; closed pages are mapped nowhere."""

    def __init__(self, layout: Layout, delay: str) -> None:
        self._delay = delay
        super().__init__(layout)

    def _allocate(self, layout: Layout) -> None:
        import torch

        self._memory = SharedMemory(torch.cuda.current_device(), layout.total, layout.open_ranges)
        self.fds = self._memory.fds
        self.bytes = torch.as_tensor(_Exposed(self._memory, layout.total), device="cuda")

    @property
    def opening(self) -> dict[str, Any]:
        return {"size": self.layout.total, "ranges": self.layout.open_ranges, "delay": self._delay}

    def settle(self) -> None:
        import torch

        torch.cuda.synchronize()

    def close(self) -> None:
        self._memory.close_fds()
        self.fds = []


class _Exposed:
    """Shared memory in the form that ``torch.as_tensor`` takes without copying, and keeps alive."""

    def __init__(self, memory: SharedMemory, size: int) -> None:
        self.memory = memory
        address = memory.base
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (size,), "typestr": "|u1", "strides": None, "version": 3
        }  # fmt: skip


class CudaStockSide(StockSide):
    """Stock on the device's clock: launches are queued behind a delay, so that the host is not measured."""

    calls_max = _STOCK_CALLS_MAX

    def __init__(self, function: Callable[..., Sequence[torch.Tensor]], arena: Arena) -> None:
        import torch

        super().__init__(function, arena)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self._cycles_per_s = clock_hz()
        self._enqueue_s = 30e-6
        self._empty_s = 0.0
        self._empty_s = median([self.block(0, 0) for _ in range(_EMPTY_BLOCKS)])

    def block(self, start: int, calls: int) -> float:
        import torch

        function, inputs, outputs, count = self._function, self._inputs, self._outputs, len(self._inputs)
        turn = [(start + i) % count for i in range(calls)]
        begin_event, end_event = self._events
        for _ in range(_TRIES):
            delay_s = min(_DELAY_MAX_S, _DELAY_MIN_S + _DELAY_SPARE * self._enqueue_s * calls)
            begin = time.perf_counter()
            torch.cuda._sleep(int(delay_s * self._cycles_per_s))
            begin_event.record()
            for place in turn:
                outputs[place] = function(*inputs[place])
            end_event.record()
            enqueue_s = time.perf_counter() - begin
            end_event.synchronize()
            if enqueue_s < delay_s:
                break
            self._enqueue_s = max(self._enqueue_s, enqueue_s / max(calls, 1))
        taken_s: float = begin_event.elapsed_time(end_event) * 1e-3
        return max(taken_s - self._empty_s, 1e-9)


class CudaCandidateSide(CandidateSide):
    """The kernel on the device's clock, read by the runner: no code of the candidate runs on the host there.

    The checker's own clock bounds it from above.
    """

    calls_max = _CANDIDATE_CALLS_MAX

    def __init__(self, candidate: Candidate, timed: range) -> None:
        super().__init__(candidate, timed)
        self._empty_event_s = median([candidate.block(0, 0)[1] for _ in range(_EMPTY_BLOCKS)])

    def block(self, start: int, calls: int) -> float:
        wall_s, own_s = self._candidate.block(start, calls)
        return max(min(own_s, wall_s) - self._empty_event_s, 1e-9)
