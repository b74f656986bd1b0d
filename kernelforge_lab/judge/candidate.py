"""A built kernel in its own process, seen from the checker: start, run, time, and explain its death."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..exc import ForgeError
from ..targets.base import Built
from .arena import Arena
from .layout import ARMED_PLACES
from .sandbox import call_name
from .verdict import Status

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
_RUNNER: Final = Path(__file__).with_name("runner.py")
_START_TIMEOUT_S: Final = 30.0
# Threads that spin for a few hundred µs after a parallel loop (300 000 rounds are libgomp's own default,
# some ms). Fully passive waiting slows eager and kernels alike by 2x on small regions (measured), which no
# person's process does; spinning for ms would disturb the block of the other side.
OMP_ENVIRONMENT: Final = {
    "OMP_WAIT_POLICY": "passive",
    "GOMP_SPINCOUNT": "20000",
    "KMP_BLOCKTIME": "0",
    "OMP_DYNAMIC": "false",
}


class CandidateDied(Exception):
    """The runner is gone; ``status`` and ``evidence`` say what the kernel did."""

    def __init__(self, status: Status, evidence: str) -> None:
        super().__init__(evidence)
        self.status = status
        self.evidence = evidence


class RunnerProcess:
    """One interpreter with a stripped environment, started early (20 ms) and waiting for a kernel.

    ``script`` is what it runs, ``environment`` what it gets besides, ``paths`` where it may import from.
    """

    def __init__(
        self,
        threads: int,
        *,
        script: Path = _RUNNER,
        environment: Mapping[str, str] | None = None,
        paths: Sequence[str] = (),
    ) -> None:
        ours, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="kernelforge-run-")
        base = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "OMP_NUM_THREADS": str(threads)}
        start = ["-I", "-c", _BOOT, str(theirs.fileno()), str(script), str(_PACKAGE_PARENT), *paths]
        self.process = subprocess.Popen(
            [sys.executable, *start],
            cwd=self._folder.name,
            env={**base, **OMP_ENVIRONMENT, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        self._channel = ours
        self._buffer = b""
        self.ready = False
        self.opened: Arena | None = None

    def wait_ready(self) -> None:
        """Raises ForgeError when the interpreter does not come up."""
        if not self.ready:
            answer = self.receive(_START_TIMEOUT_S)
            if "ready" not in answer:
                reason = answer.get("error", "is the disk full?")
                raise ForgeError("The runner process did not start.", f"Try again; {reason}")
            self.ready = True

    def send(self, fds: Sequence[int] = (), **command: Any) -> None:
        data = json.dumps(command).encode() + b"\n"
        try:
            if fds:
                socket.send_fds(self._channel, [data], list(fds))
            else:
                self._channel.sendall(data)
        except OSError:
            pass  # the death is noticed and explained by receive

    def receive(self, limit_s: float) -> dict[str, Any]:
        """The next answer. ``{"gone": True}`` when the process ended, ``{"late": True}`` past the limit."""
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._channel], [], [], left)[0]:
                return {"late": True}
            try:
                data = self._channel.recv(65536)
            except OSError:
                data = b""
            if not data:
                return {"gone": True}
            self._buffer += data
            if len(self._buffer) > 1 << 20:
                return {"gone": True}
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        return answer if isinstance(answer, dict) else {"gone": True}

    def kill(self) -> None:
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except OSError:
                self.process.kill()
        self.process.wait()
        self._channel.close()
        self._folder.cleanup()


# Moves the socket to descriptor 3 and becomes the runner; -I keeps the working folder off sys.path.
_BOOT: Final = (
    "import os,sys\n"
    "fd=int(sys.argv[1])\n"
    "(os.dup2(fd,3),os.close(fd)) if fd!=3 else None\n"
    "os.set_inheritable(3,False)\n"
    "import runpy\n"
    "sys.argv=sys.argv[2:]\n"
    "runpy.run_path(sys.argv[0],run_name='__main__')\n"
)


class Candidate:
    """A kernel loaded in a runner. Every method raises CandidateDied when the runner dies or hangs."""

    def __init__(
        self, runner: RunnerProcess, built: Built, arena: Arena, *, threads: int, limit_s: float
    ) -> None:
        self._runner = runner
        self._arena = arena
        self._layout = layout = arena.layout
        self.limit_s = limit_s
        self.caged = False
        self.alive = True
        runner.wait_ready()
        if runner.opened is not arena:
            runner.send(arena.fds, do="open", **arena.opening)
            answer = self._answer("opening the arena", _START_TIMEOUT_S)
            if "error" in answer:
                raise ForgeError(f"A runner cannot map the judge's memory: {answer['error']}.")
            runner.opened = arena
        places = [{name: slot.pointer for name, slot in place.slots.items()} for place in layout.places]
        plain: Mapping[str, Any] = {
            "path": built.path,
            "tensors": built.tensors,
            "workspaces": built.plan.workspaces,
            "launches": built.plan.launches,
        }
        runner.send(do="load", target=built.plan.target, threads=threads, built=plain, places=places)
        answer = self._answer("loading", _START_TIMEOUT_S)
        if "error" in answer:
            raise CandidateDied(Status.LAUNCH_ERROR, str(answer["error"]))
        self.caged = bool(answer.get("caged"))

    @property
    def pid(self) -> int:
        return self._runner.process.pid

    def run(self, place: int, times: int = 1) -> None:
        self._arena.settle()
        self._runner.send(do="run", place=place, times=times)
        self._answer("running", self.limit_s * times)

    def block(self, start: int, calls: int) -> tuple[float, float]:
        """(our wall time, the runner's own) in seconds of ``calls`` launches from timed place ``start``."""
        self._arena.settle()
        begin = time.perf_counter()
        self._runner.send(do="block", first=ARMED_PLACES, start=start, calls=calls)
        answer = self._answer("being timed", self.limit_s + calls * self.limit_s / 10)
        wall_s = time.perf_counter() - begin
        own = answer.get("ns")
        return wall_s, own * 1e-9 if isinstance(own, int) else wall_s

    @property
    def runner(self) -> RunnerProcess:
        return self._runner

    def _answer(self, doing: str, limit_s: float) -> dict[str, Any]:
        answer = self._runner.receive(limit_s)
        self.alive = not answer.keys() & {"late", "fault", "gone"}
        if "late" in answer:
            self._runner.kill()
            raise CandidateDied(Status.TIMEOUT, f"no answer within {limit_s:.1f} s while {doing}; killed")
        if "fault" in answer or "gone" in answer:
            raise self._explain(answer, doing)
        return answer

    def _explain(self, answer: dict[str, Any], doing: str) -> CandidateDied:
        if answer.get("fault") == "cuda":
            self._runner.kill()
            return explain_cuda(str(answer.get("message", "")), doing)
        try:
            code = self._runner.process.wait(2.0)
        except subprocess.TimeoutExpired:
            code = 0
        self._runner.kill()
        if answer.get("fault") == "syscall" or code == -signal.SIGSYS:
            name = call_name(int(answer.get("call", -1))) if "call" in answer else "a system call"
            return CandidateDied(
                Status.REJECTED, f"the kernel tried {name}, which the sandbox forbids, while {doing}"
            )
        if answer.get("fault") == "memory" and isinstance(answer.get("offset"), int):
            return self._explain_address(answer["offset"], doing)
        if code < 0:
            name = signal.Signals(-code).name
            return CandidateDied(Status.CRASHED, f"the process died of {name} while {doing}")
        return CandidateDied(Status.CRASHED, f"the process ended by itself (code {code}) while {doing}")

    def _explain_address(self, offset: int, doing: str) -> CandidateDied:
        found = self._layout.locate(offset)
        if found is None:
            return CandidateDied(
                Status.CRASHED, f"memory fault far from every tensor while {doing} (bad pointer or index)"
            )
        kind, name, distance = found
        if distance == 0 and kind == "input":
            return CandidateDied(Status.MUTATED_INPUT, f"wrote to {name}, which is an input (memory fault)")
        side = "past the end" if distance > 0 else "before the start"
        return CandidateDied(
            Status.OUT_OF_BOUNDS, f"touched memory {abs(distance)} bytes {side} of {name} while {doing}"
        )


# Words of CUDA's error names, and what a kernel did to get them.
_CUDA_FAULTS: Final = (
    ("illegal memory access", Status.OUT_OF_BOUNDS, "touched memory outside every tensor"),
    ("illegal address", Status.OUT_OF_BOUNDS, "touched memory outside every tensor"),
    ("misaligned address", Status.CRASHED, "used a vector access on an address that is not aligned for it"),
    ("device-side assert", Status.CRASHED, "failed an assertion"),
    ("out of resources", Status.LAUNCH_ERROR, "needs more registers or shared memory than a block can have"),
    ("invalid argument", Status.LAUNCH_ERROR, "was refused by the driver"),
    ("out of memory", Status.LAUNCH_ERROR, "needs more memory than the GPU has free"),
    ("timed out", Status.TIMEOUT, "ran longer than the driver allows"),
)


def explain_cuda(message: str, doing: str) -> CandidateDied:
    """The verdict on a CUDA error, in its own words and in ours."""
    for words, status, meaning in _CUDA_FAULTS:
        if words in message.lower():
            return CandidateDied(status, f"the kernel {meaning} while {doing} ({message})")
    return CandidateDied(Status.CRASHED, f"CUDA error while {doing}: {message}")
