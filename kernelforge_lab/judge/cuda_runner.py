"""The candidate's process on a GPU: its own CUDA context, in which a fault harms nobody else.

Started as ``python -I cuda_runner.py PACKAGE_PARENT PATH…`` with one socket as file descriptor 3; speaks
what runner.py speaks. A kernel here is device code and nothing else, so this process needs no cage: all
that a candidate can spoil is this context. After any CUDA error the process says so and ends.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import time
from typing import Any

_SOCKET_FD = 3
_FDS_MAX = 250
# Enqueueing a launch takes 5 µs; waiting a bit longer than everything takes keeps the queue full.
_ENQUEUE_S = 10e-6
_DELAY_SPARE = 1.5
_DELAY_MIN_S = 40e-6
_DELAY_MAX_S = 0.05
_TRIES = 3

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.path.extend(sys.argv[2:])

from kernelforge_lab.judge import sandbox  # noqa: E402 - found only now
from kernelforge_lab.judge.runner import Runner  # noqa: E402


class CudaRunner(Runner):
    """Holds the context, the shared memory and the bound calls of every place."""

    def __init__(self, channel: socket.socket) -> None:
        from kernelforge_lab.targets.cuda_device import driver

        super().__init__(channel)
        self._cuda = driver()
        self._context = self._cuda.Device(0).retain_primary_context()
        self._context.push()
        self._memory: Any = None
        self._delay: Any = None
        self._fds: list[int] = []
        self._launches = 1
        self._enqueue_s = _ENQUEUE_S

    def serve(self) -> None:
        try:
            super().serve()
        except self._cuda.Error as error:
            self._send({"fault": "cuda", "message": str(error)})
            # Not sys.exit: destructors would only meet the broken context.
            os._exit(1)

    def do_open(self, size: int, ranges: list[tuple[int, int]], delay: str) -> dict[str, Any]:  # type: ignore[override]
        """Map the memory whose descriptors came along, in place of what was mapped before."""
        from kernelforge_lab.targets.cuda_delay import Delay
        from kernelforge_lab.targets.cuda_memory import SharedMemory

        self._unload()
        if self._memory is not None:
            self._memory.close()
        try:
            self._memory = SharedMemory(0, size, ranges, self._fds)
        except (OSError, MemoryError) as error:
            return {"error": str(error)}
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._base = self._memory.base
        self._delay = self._delay or Delay(delay)
        self._events = (self._cuda.Event(), self._cuda.Event())
        return {"ok": True}

    def do_load(
        self, target: str, threads: int, built: dict[str, Any], places: list[dict[str, int]]
    ) -> dict[str, Any]:
        """Load the cubin and bind it to the addresses of every place."""
        from kernelforge_lab import targets
        from kernelforge_lab.exc import ForgeError
        from kernelforge_lab.kernels.format import LaunchPlan, ResolvedLaunch

        self._unload()
        workspaces = tuple((name, dtype, numel) for name, dtype, numel in built["workspaces"])
        launches = tuple(
            ResolvedLaunch(function, tuple(grid), tuple(block), smem, tuple(args))
            for function, grid, block, smem, args in built["launches"]
        )
        plan = LaunchPlan(target, {}, {}, workspaces, launches)
        handle = targets.Built(built["path"], plan, tuple(built["tensors"]), "", 0.0)
        try:
            launcher = targets.get(target, threads=threads).load(handle)
        except ForgeError as error:
            return {"error": str(error)}
        for place in places:
            self._calls.append(launcher({name: self._base + at for name, at in place.items()}))
        self._launches = len(launches)
        self._enqueue_s = _ENQUEUE_S * self._launches
        return {"ok": True, "caged": False}

    def do_run(self, place: int, times: int = 1) -> dict[str, Any]:
        for _ in range(times):
            self._calls[place]()
        self._context.synchronize()
        return {"ok": True}

    def do_block(self, first: int, start: int, calls: int) -> dict[str, Any]:
        """``calls`` launches, rotating through the places after ``first`` from ``start``; device ns."""
        table = self._calls[first:]
        turn = [table[(start + i) % len(table)] for i in range(calls)]
        begin_event, end_event = self._events
        for _ in range(_TRIES):
            delay_s = min(_DELAY_MAX_S, _DELAY_MIN_S + _DELAY_SPARE * self._enqueue_s * calls)
            begin = time.perf_counter()
            self._delay(delay_s)
            begin_event.record()
            for call in turn:
                call()
            end_event.record()
            enqueue_s = time.perf_counter() - begin
            end_event.synchronize()
            if enqueue_s < delay_s:
                break
            # The device began before everything was queued, and may have waited for the host.
            self._enqueue_s = max(self._enqueue_s, enqueue_s / max(calls, 1))
        return {"ns": round(begin_event.time_till(end_event) * 1e6)}

    def _unload(self) -> None:
        self._calls.clear()
        gc.collect()

    def _receive(self) -> dict[str, Any] | None:
        while b"\n" not in self._buffer:
            data, fds, _, _ = socket.recv_fds(self._channel, 65536, _FDS_MAX)
            self._fds += fds
            if not data:
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        command: dict[str, Any] = json.loads(line)
        return command


def main() -> None:
    channel = socket.socket(fileno=_SOCKET_FD)
    sandbox.die_with_parent()
    try:
        runner = CudaRunner(channel)
    except Exception as error:  # noqa: BLE001 - whatever is missing, the checker hears of it
        channel.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    runner._send({"ready": "cuda"})
    runner.serve()
    os._exit(0)


if __name__ == "__main__":
    main()
