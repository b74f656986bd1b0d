"""The judge as the person's process sees it: futures. No candidate and no torch work ever runs here."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import PriorityQueue
from typing import Any, Final, Self

from ..exc import WorkerDied
from ..kernels.region import Region
from ..kernels.stats import InputStats
from ..targets import require_compiler
from . import channel
from .candidate import OMP_ENVIRONMENT
from .job import Job, Limits, Stock
from .verdict import Status, Verdict

_PACKAGE_PARENT: Final = Path(__file__).resolve().parents[2]
# What the checker needs of the environment. Keys and tokens are not on this list, and never get further.
_KEPT: Final = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX",
    "LD_LIBRARY_PATH", "CC", "CXX", "KERNELFORGE_CXX", "KERNELFORGE_CACHE", "TORCHINDUCTOR_CACHE_DIR",
    "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "KERNELFORGE_CUDA_COMPILER", "TRITON_CACHE_DIR",
)  # fmt: skip
# Memory that stock frees stays in the process: eager must not pay page faults that the candidate's
# preallocated outputs do not pay (measured: 2900 instead of 500 µs for one add+RMSNorm).
_MALLOC: Final = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26),
}
# A judgement that takes this long is a fault of ours; the checker is replaced.
_REQUEST_LIMIT_S: Final = 600.0
_RETRIES: Final = 1
_CLOSE_GRACE_S: Final = 3.0


class JudgePool:
    """Judges kernels for one target in a checker process that starts at once, in the background.

    Raises NoCompilerError where nothing can be built: before any stock is measured in vain.

    >>> pool = JudgePool("cpu")  # doctest: +SKIP
    >>> pool.submit(Job(region, kernel)).result().status  # doctest: +SKIP
    """

    def __init__(
        self,
        target_name: str,
        *,
        threads: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        require_compiler(target_name)
        self._target = target_name
        self._threads = threads
        self._environment = dict(environment or {})
        self._queue: PriorityQueue[tuple[int, int, str, Any, Future[Any] | None]] = PriorityQueue()
        self._numbers = itertools.count()
        self._closed = False
        self._worker = _Worker(target_name, threads, self._environment)
        self._thread = threading.Thread(target=self._serve, name="kernelforge-judge", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Verdict]:
        """The verdict on a kernel. The future never fails for what a kernel does, only with ForgeError."""
        return self._enqueue(1, "judge", job)

    def prepare(
        self, region: Region, stats: Sequence[InputStats] = (), *, seed: int = 0, limits: Limits | None = None
    ) -> Future[Stock]:
        """Measure stock for a region ahead of its first kernel (``submit`` does it when needed)."""
        self._worker.tell("soon", region)
        return self._enqueue(0, "prepare", (region, tuple(stats), limits or Limits(), seed))

    def close(self) -> None:
        """End the worker. What is waiting is cancelled; what runs is killed."""
        if self._closed:
            return
        self._closed = True
        self._enqueue(-1, "close", None)
        self._worker.kill()
        self._thread.join(_CLOSE_GRACE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, priority: int, kind: str, payload: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self._closed and kind != "close":
            future.set_exception(WorkerDied("The judge is closed.", "Start a new run."))
            return future
        self._queue.put((priority, next(self._numbers), kind, payload, future))
        return future

    def _serve(self) -> None:
        while True:
            _, _, kind, payload, future = self._queue.get()
            assert future is not None
            if kind == "close":
                break
            if not future.set_running_or_notify_cancel():
                continue
            self._answer(kind, payload, future)
        while not self._queue.empty():
            future = self._queue.get()[4]
            if future is not None:
                future.cancel()
        self._worker.release()

    def _answer(self, kind: str, payload: Any, future: Future[Any]) -> None:
        """Ask the worker; replace one that died. A kernel that takes the checker with it has crashed."""
        for attempt in range(_RETRIES + 1):
            try:
                ok, value = self._worker.ask(kind, payload)
            except WorkerDied as error:
                if self._closed:
                    future.set_exception(WorkerDied("The judge was closed.", "Start a new run."))
                    return
                self._worker = _Worker(self._target, self._threads, self._environment)
                if attempt < _RETRIES:
                    continue
                if kind == "judge":
                    future.set_result(
                        Verdict(Status.CRASHED, f"the judge's process died twice on it: {error}")
                    )
                else:
                    future.set_exception(error)
                return
            if ok:
                future.set_result(value)
            else:
                future.set_exception(value)
            return


class _Worker:
    """One checker process and the pipe to it."""

    def __init__(self, target: str, threads: int | None, more: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kernelforge-judge-")
        self._log = (Path(self._folder.name) / "log").open("w+b")
        self._numbers = itertools.count()
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernelforge_lab.judge.worker", target, str(threads or 0)],
            cwd=self._folder.name,
            env={**_environment(threads), **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def tell(self, kind: str, payload: Any) -> None:
        """A message without an answer."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError), self._writing:
            channel.send(self._process.stdin, (-1, kind, payload))

    def ask(self, kind: str, payload: Any) -> tuple[bool, Any]:
        """(succeeded, value or exception). Raises WorkerDied."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        watch = threading.Timer(_REQUEST_LIMIT_S, self.kill)
        watch.daemon = True
        watch.start()
        try:
            number = next(self._numbers)
            with self._writing:
                channel.send(process.stdin, (number, kind, payload))
            answered, ok, value = channel.receive(process.stdout)
            assert answered == number
            return ok, value
        except (OSError, EOFError, ValueError):
            words = self._last_words()
            self.kill()
            self.release()
            raise WorkerDied(f"A judge worker ended with code {process.returncode}.", words) from None
        finally:
            watch.cancel()

    def kill(self) -> None:
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, 9)
            except OSError:
                self._process.kill()
        self._process.wait()

    def release(self) -> None:
        """Close what belongs to a dead worker. Only by the thread that asks: it may still be reading."""
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()
        self._folder.cleanup()

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._log.flush()
        self._log.seek(0)
        return self._log.read()[-500:].decode(errors="replace").strip()


def _environment(threads: int | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # The checkout may not be installed; the checker's own working folder is an empty one.
    paths = [str(_PACKAGE_PARENT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    kept["PYTHONPATH"] = os.pathsep.join(paths)
    if threads:
        kept["OMP_NUM_THREADS"] = str(threads)
    # One compile at a time, without inductor's own pool of processes, which would outlive a pause.
    kept["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    return {**kept, **OMP_ENVIRONMENT, **_MALLOC}
