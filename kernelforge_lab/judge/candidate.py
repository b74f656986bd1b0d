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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..exc import ForgeError
from ..targets.base import Built
from .layout import ARMED_PLACES, Layout
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
    """One caged interpreter, started early (20 ms) and used for one kernel only."""

    def __init__(self, threads: int) -> None:
        ours, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="kernelforge-run-")
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "OMP_NUM_THREADS": str(threads)}
        environment |= OMP_ENVIRONMENT
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, str(theirs.fileno()), str(_RUNNER), str(_PACKAGE_PARENT)],
            cwd=self._folder.name,
            env=environment,
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

    def wait_ready(self) -> None:
        """Raises ForgeError when the interpreter does not come up."""
        if not self.ready:
            answer = self.receive(_START_TIMEOUT_S)
            if "ready" not in answer:
                raise ForgeError("The runner process did not start.", "Try again; is the disk full?")
            self.ready = True

    def send(self, fd: int | None = None, **command: Any) -> None:
        data = json.dumps(command).encode() + b"\n"
        try:
            if fd is None:
                self._channel.sendall(data)
            else:
                socket.send_fds(self._channel, [data], [fd])
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
    "sys.argv=[sys.argv[2],sys.argv[3]]\n"
    "runpy.run_path(sys.argv[0],run_name='__main__')\n"
)


class Candidate:
    """A kernel loaded in a runner. Every method raises CandidateDied when the runner dies or hangs."""

    def __init__(
        self, runner: RunnerProcess, built: Built, layout: Layout, fd: int, *, threads: int, limit_s: float
    ) -> None:
        self._runner = runner
        self._layout = layout
        self.limit_s = limit_s
        self.caged = False
        runner.wait_ready()
        armed = layout.places[:ARMED_PLACES]
        runner.send(
            fd,
            do="open",
            size=layout.total,
            closed=[r for place in armed for r in place.closed],
            read_only=[r for place in armed for r in place.read_only],
            memory_bytes=_SPARE_ADDRESS_BYTES + layout.total,
            cpu_s=_CPU_LIMIT_S,
        )
        self._answer("opening the arena", _START_TIMEOUT_S)
        places = [{name: slot.pointer for name, slot in place.slots.items()} for place in layout.places]
        plain: Mapping[str, Any] = {
            "path": built.path,
            "tensors": built.tensors,
            "workspaces": built.plan.workspaces,
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
        self._runner.send(do="run", place=place, times=times)
        self._answer("running", self.limit_s * times)

    def block(self, start: int, calls: int) -> tuple[float, float]:
        """(our wall time, the runner's own) in seconds of ``calls`` launches from timed place ``start``."""
        begin = time.perf_counter()
        self._runner.send(do="block", first=ARMED_PLACES, start=start, calls=calls)
        answer = self._answer("being timed", self.limit_s + calls * self.limit_s / 10)
        wall_s = time.perf_counter() - begin
        own = answer.get("ns")
        return wall_s, own * 1e-9 if isinstance(own, int) else wall_s

    def close(self) -> None:
        self._runner.kill()

    def _answer(self, doing: str, limit_s: float) -> dict[str, Any]:
        answer = self._runner.receive(limit_s)
        if "late" in answer:
            self._runner.kill()
            raise CandidateDied(Status.TIMEOUT, f"no answer within {limit_s:.1f} s while {doing}; killed")
        if "fault" in answer or "gone" in answer:
            raise self._explain(answer, doing)
        return answer

    def _explain(self, answer: dict[str, Any], doing: str) -> CandidateDied:
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
