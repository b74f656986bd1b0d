"""Judges on other processes and machines, through any ``concurrent.futures`` executor.

Every worker process keeps a ``JudgePool`` of its own, so a kernel is compiled, proven and timed against
stock on one and the same machine, and what a worker measured is never compared with another's numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any, Final, Protocol

from ..exc import ForgeError, ProblemError, WorkerDied
from ..kernels.region import Region
from ..kernels.stats import InputStats
from .job import Job, Stock
from .verdict import Status, Verdict

# A worker that leaves takes its work with it; a kernel that takes this many workers along has crashed them.
_TRIES: Final = 3
# Asking a scheduler who is there costs a round trip.
_COUNT_EVERY_S: Final = 2.0
# What executors raise when a worker process died on the work (and not of something else).
_DEADLY: Final = ("BrokenProcessPool", "KilledWorker")


class LocalJudge(Protocol):
    """What a worker process judges with: a ``JudgePool``, in tests a fake."""

    def prepare(self, region: Region, stats: tuple[InputStats, ...]) -> Future[Stock]: ...
    def submit(self, job: Job) -> Future[Verdict]: ...


class JudgeFarm:
    """The judge of a search (``search.judge.Judge``) whose workers are an executor's.

    ``executor`` is one, a ``dask.distributed`` client, or a function that makes an executor: then one that
    broke (a killed process breaks a ProcessPoolExecutor for good) is replaced. The farm closes only
    executors that it made.
    """

    def __init__(
        self, target: str, executor: Any, *, open_judge: Callable[[str], LocalJudge] | None = None
    ) -> None:
        self._target, self._open_judge = target, open_judge or open_pool
        self._make = executor if _is_factory(executor) else None
        self._executor = executor() if self._make else as_executor(executor)
        self._lock = Lock()
        self._closed = False

    def prepare(self, region: Region, stats: Sequence[InputStats] = ()) -> Future[Stock]:
        return self._send(_Errand("prepare", (region, tuple(stats))))

    def submit(self, job: Job) -> Future[Verdict]:
        return self._send(_Errand("judge", job))

    def close(self) -> None:
        """Nothing further is sent; answers still to come are for nobody."""
        self._closed = True
        if self._make:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _send(self, errand: _Errand) -> Future[Any]:
        errand.answer.set_running_or_notify_cancel()
        self._try(errand)
        return errand.answer

    def _try(self, errand: _Errand) -> None:
        executor = self._executor
        errand.tries += 1
        try:
            sent = executor.submit(serve, self._open_judge, self._target, errand.kind, errand.payload)
        except Exception as error:  # noqa: BLE001 - each executor breaks with exceptions of its own
            self._again(errand, executor, error)
            return

        def done(future: Future[Any]) -> None:
            try:
                errand.answer.set_result(future.result())
            except ForgeError as error:
                errand.answer.set_exception(error)
            except (CancelledError, Exception) as error:  # noqa: BLE001 - as above
                self._again(errand, executor, error)

        sent.add_done_callback(done)

    def _again(self, errand: _Errand, broken: Any, error: BaseException) -> None:
        """A worker left with the work: give it to another."""
        if self._closed:
            errand.answer.set_exception(WorkerDied("The judge was closed.", "Start a new run."))
        elif errand.tries < _TRIES:
            self._renew(broken)
            self._try(errand)
        elif errand.kind == "judge" and type(error).__name__ in _DEADLY:
            verdict = Verdict(Status.CRASHED, f"{_TRIES} workers died on it: {error!r}")
            errand.answer.set_result(verdict)
        else:
            said = f"The workers cannot judge: {error!r}."
            errand.answer.set_exception(WorkerDied(said, "Look at their logs."))

    def _renew(self, broken: Any) -> None:
        with self._lock:
            if self._make and self._executor is broken and not self._closed:
                broken.shutdown(wait=False, cancel_futures=True)
                self._executor = self._make()


@dataclass
class _Errand:
    """Something to be judged, who waits for it, and how often it was sent."""

    kind: str
    payload: Any
    answer: Future[Any] = field(default_factory=Future)
    tries: int = 0


def serve(open_judge: Callable[[str], LocalJudge], target: str, kind: str, payload: Any) -> Any:
    """In the worker: judge with this process's own pool."""
    judge = open_judge(target)
    return (judge.submit(payload) if kind == "judge" else judge.prepare(*payload)).result()


@cache
def open_pool(target: str) -> LocalJudge:
    """This worker process's pool; it ends with the process."""
    from .pool import JudgePool

    return JudgePool(target)


def as_executor(executor: Any) -> Executor:
    """An executor as it is, a dask client's as an executor. Raises ProblemError for anything else."""
    if hasattr(executor, "get_executor"):
        # One kernel at a time on a worker: others would disturb its measurement. A kernel is never pure.
        made: Executor = executor.get_executor(pure=False)
        return made
    if not callable(getattr(executor, "submit", None)):
        raise ProblemError(
            f"executor: a {type(executor).__name__} has no submit().",
            "Give a concurrent.futures executor, a dask.distributed Client, or a function that makes one.",
        )
    found: Executor = executor
    return found


def places(executor: Any) -> Callable[[], int]:
    """How many kernels can be judged at once now: 1 here, else the executor's workers."""
    if executor is None:
        return lambda: 1
    count = _counter(executor)
    known: list[tuple[float, int]] = []

    def now() -> int:
        if not known or time.monotonic() - known[0][0] > _COUNT_EVERY_S:
            known[:] = [(time.monotonic(), max(1, count()))]
        return known[0][1]

    return now


def _counter(executor: Any) -> Callable[[], int]:
    if hasattr(executor, "nthreads"):
        return lambda: sum(executor.nthreads().values())
    if hasattr(executor, "_client"):  # dask's own executor
        return lambda: sum(executor._client.nthreads().values())
    if hasattr(executor, "places"):  # a factory or an executor that says so
        return lambda: int(executor.places)
    return lambda: int(getattr(executor, "_max_workers", 1))


def _is_factory(executor: Any) -> bool:
    return callable(executor) and not hasattr(executor, "submit")
