"""The candidate's process: loads one built kernel and calls it when told to. Torch-free, caged.

Started as ``python -I runner.py PACKAGE_PARENT`` with one socket as file descriptor 3. The checker speaks
JSON lines (and passes the arena's memfd); answers are JSON lines too, and nothing in them is believed
beyond "it came back": outputs lie in the arena and the checker has its own clock.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

_SOCKET_FD = 3
_FAULT_SYSCALL, _FAULT_MEMORY = "syscall", "memory"


class Runner:
    """Holds the socket, the arena and the bound calls of every place."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffer = b""
        self._fd = channel.fileno()
        self._base = 0
        self._arena_fd = -1
        self._map: mmap.mmap | None = None
        self._calls: list[Callable[[], None]] = []

    def serve(self) -> None:
        while True:
            command = self._receive()
            if command is None:
                return
            self._send(getattr(self, "do_" + command.pop("do"))(**command))

    def do_open(
        self, size: int, closed: list[list[int]], read_only: list[list[int]], memory_bytes: int, cpu_s: int
    ) -> dict[str, Any]:
        """Map the arena (its descriptor comes as ancillary data) and close the guard pages."""
        self._map = mmap.mmap(self._arena_fd, size)
        os.close(self._arena_fd)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        protect = ctypes.CDLL(None).mprotect
        for ranges, mode in ((closed, 0), (read_only, mmap.PROT_READ)):
            for offset, length in ranges:
                protect(ctypes.c_void_p(self._base + offset), ctypes.c_size_t(length), mode)
        sandbox.limit_resources(memory_bytes, cpu_s)
        return {"ok": True}

    def do_load(
        self, target: str, threads: int, built: dict[str, Any], places: list[dict[str, int]]
    ) -> dict[str, Any]:
        """Load the binary and bind it to the addresses of every place."""
        from kernelforge_lab import targets
        from kernelforge_lab.exc import ForgeError
        from kernelforge_lab.kernels.format import LaunchPlan

        workspaces = tuple((name, dtype, numel) for name, dtype, numel in built["workspaces"])
        plan = LaunchPlan(target, {}, {}, workspaces, ())
        handle = targets.Built(built["path"], plan, tuple(built["tensors"]), "", 0.0)
        self._report_faults()
        caged = sandbox.restrict(loading=True)
        try:
            launcher = targets.get(target, threads=threads).load(handle)
        except ForgeError as error:
            return {"error": str(error)}
        for place in places:
            self._calls.append(launcher({name: self._base + at for name, at in place.items()}))
        caged = caged and sandbox.restrict(loading=False)
        return {"ok": True, "caged": caged}

    def do_run(self, place: int, times: int = 1) -> dict[str, Any]:
        for _ in range(times):
            self._calls[place]()
        return {"ok": True}

    def do_block(self, first: int, start: int, calls: int) -> dict[str, Any]:
        """``calls`` launches, rotating through the places after ``first`` from ``start``; own time in ns."""
        table = self._calls[first:]
        count = len(table)
        turn = [table[(start + i) % count] for i in range(min(calls, count))]
        rounds, rest = divmod(calls, len(turn)) if turn else (0, 0)
        last = turn[:rest]
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            for call in turn:
                call()
        for call in last:
            call()
        return {"ns": time.perf_counter_ns() - begin}

    def _report_faults(self) -> None:
        """Tell where a memory fault or a forbidden system call happened before dying of it."""

        def on_fault(number: int, info: int, _context: int) -> None:
            # siginfo_t: si_addr at byte 16; for SIGSYS si_call_addr there and si_syscall at byte 24.
            if number == signal.SIGSYS:
                detail = {"fault": _FAULT_SYSCALL, "call": ctypes.c_int.from_address(info + 24).value}
            else:
                at = ctypes.c_size_t.from_address(info + 16).value
                detail = {"fault": _FAULT_MEMORY, "offset": at - self._base, "signal": number}
            os.write(self._fd, json.dumps(detail).encode() + b"\n")
            os._exit(77)

        self._on_fault = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(on_fault)
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGSYS):
            _install_handler(number, self._on_fault)

    def _receive(self) -> dict[str, Any] | None:
        while b"\n" not in self._buffer:
            if self._map is None:
                data, fds, _, _ = socket.recv_fds(self._channel, 65536, 1)
                self._arena_fd = fds[0] if fds else self._arena_fd
            else:
                data = os.read(self._fd, 65536)
            if not data:
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        command: dict[str, Any] = json.loads(line)
        return command

    def _send(self, answer: dict[str, Any]) -> None:
        os.write(self._fd, json.dumps(answer).encode() + b"\n")


def _install_handler(number: int, handler: Any) -> None:
    """sigaction with SA_SIGINFO, running once: a second fault inside the handler just kills."""

    class _Action(ctypes.Structure):
        _fields_ = [
            ("handler", ctypes.c_void_p),
            ("mask", ctypes.c_ulong * 16),
            ("flags", ctypes.c_int),
            ("restorer", ctypes.c_void_p),
        ]

    siginfo, resethand, nodefer = 0x4, 0x80000000, 0x40000000
    action = _Action()
    action.handler = ctypes.cast(handler, ctypes.c_void_p).value
    action.flags = ctypes.c_int(siginfo | resethand | nodefer).value
    ctypes.CDLL(None).sigaction(int(number), ctypes.byref(action), None)


def main() -> None:
    channel = socket.socket(fileno=_SOCKET_FD)
    runner = Runner(channel)
    # Everything that is imported later would need files that the cage no longer opens.
    import kernelforge_lab.kernels.format
    import kernelforge_lab.targets.cpu

    runner._send({"ready": kernelforge_lab.targets.cpu.__name__})
    runner.serve()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    from kernelforge_lab.judge import sandbox

    main()
