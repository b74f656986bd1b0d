"""The ground kernels are tried on: what judging needs to know about one target's memory, processes, clock.

A new target is another ``Ground`` and a row in ``ground_of``; nothing else of the judge knows targets apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..targets.base import DeviceInfo, Target
from . import call_clock, roof
from .arena import Arena, HostArena
from .candidate import Candidate, RunnerProcess
from .layout import CPU_MEMORY, PAGE_BYTES, Geometry, Layout
from .timing import CandidateSide, Side, StockSide

if TYPE_CHECKING:
    import torch

# judging.md: rotate through more than three times the cache that would otherwise serve everything.
ROTATE_CACHES: Final = 3


class Ground(Protocol):
    """``torch_device`` is where stock and the oracle run; ``rotate_bytes`` what timing rotates through.

    ``lock_name`` names the device among all of the machine: only one judge measures on it at a time.
    """

    torch_device: str
    lock_name: str
    geometry: Geometry
    rotate_bytes: int

    def arena(self, layout: Layout) -> Arena: ...

    def take_runner(self, *, fresh: bool = False) -> RunnerProcess:
        """A process for one kernel; the next one is made ready meanwhile. ``fresh``: no kernel was in it."""

    def give_back(self, runner: RunnerProcess, *, clean: bool) -> None:
        """The kernel is done. ``clean``: nothing went wrong in the process."""

    def wait_ready(self) -> None:
        """Until no process of ours is starting up."""

    def stock_side(self, function: Callable[..., Sequence[torch.Tensor]], arena: Arena) -> Side: ...

    def candidate_side(self, candidate: Candidate, timed: range) -> Side: ...

    def touch_kernels(self, region: Region) -> list[Kernel]:
        """Kernels that move as many bytes as the region must, for the physical limit."""

    def threads(self) -> AbstractContextManager[None]:
        """Inside, torch may use all of the device."""

    def stock_modes(self) -> dict[str, dict[str, Any]]:
        """Name → options of the ways in which torch.compile is a baseline."""

    def call_overhead_s(self, region: Region, inputs: Sequence[torch.Tensor]) -> float | None:
        """What a guarded call costs besides its kernel; None where calls return before kernels end."""

    def memory_bytes(self, wish: int) -> int:
        """What may be held for one region, when the limits say ``wish``."""

    def close(self) -> None: ...


class CpuGround:
    """Host memory, one caged process a kernel, the wall clock."""

    torch_device = "cpu"
    lock_name = "cpu"
    geometry = CPU_MEMORY

    def __init__(self, device: DeviceInfo) -> None:
        import torch

        self._threads = device.threads
        self.rotate_bytes = ROTATE_CACHES * max(device.l2_bytes * device.threads, PAGE_BYTES)
        torch.set_num_threads(1)
        self._spare = RunnerProcess(device.threads)

    def arena(self, layout: Layout) -> Arena:
        return HostArena(layout)

    def take_runner(self, *, fresh: bool = False) -> RunnerProcess:  # noqa: ARG002 - each is fresh here
        self._replace_dead_spare()
        runner, self._spare = self._spare, RunnerProcess(self._threads)
        return runner

    def _replace_dead_spare(self) -> None:
        """Something else ended it while it idled (short memory, a person): no kernel's fault."""
        if self._spare.process.poll() is not None:
            self._spare.kill()
            self._spare = RunnerProcess(self._threads)

    def give_back(self, runner: RunnerProcess, *, clean: bool) -> None:  # noqa: ARG002 - never used twice
        runner.kill()

    def wait_ready(self) -> None:
        self._replace_dead_spare()
        self._spare.wait_ready()

    def stock_side(self, function: Callable[..., Sequence[torch.Tensor]], arena: Arena) -> Side:
        return StockSide(function, arena)

    def candidate_side(self, candidate: Candidate, timed: range) -> Side:
        return CandidateSide(candidate, timed)

    def touch_kernels(self, region: Region) -> list[Kernel]:
        return [roof.touch_kernel(region, threads) for threads in sorted({1, self._threads})]

    @contextmanager
    def threads(self) -> Iterator[None]:
        import torch

        torch.set_num_threads(self._threads)
        try:
            yield
        finally:
            # Alone it wastes nothing on waiting: proofs take half the processor time (measured).
            torch.set_num_threads(1)

    def stock_modes(self) -> dict[str, dict[str, Any]]:
        return {"compiled": {}}

    def call_overhead_s(self, region: Region, inputs: Sequence[torch.Tensor]) -> float | None:
        return call_clock.overhead_s(region, inputs)

    def memory_bytes(self, wish: int) -> int:
        return wish

    def close(self) -> None:
        self._spare.kill()


def ground_of(target: Target, device: DeviceInfo) -> Ground:
    """The ground of a target. Raises NoDeviceError when its device is not here."""
    if target.name == "cuda":
        from .cuda_ground import CudaGround

        return CudaGround(target, device)
    return CpuGround(device)
