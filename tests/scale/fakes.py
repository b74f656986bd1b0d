"""A judge for worker processes that answers after a moment, and a house of fakes around it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from functools import cache
from typing import Any

from kernelforge_lab.events import GuardCounts, StepMeasured
from kernelforge_lab.judge.job import Job, Stock
from kernelforge_lab.judge.verdict import Verdict
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.log import EventLog
from kernelforge_lab.options import Options
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store
from tests.search.fakes import FakePool, FakeProposer, workload

LATENCY_S = 0.01


class FakeSlowJudge(FakePool):
    """A FakePool whose verdicts take a moment, so that a kill falls into the middle of one."""

    def prepare(self, region: Region, stats: Any = ()) -> Future[Stock]:
        time.sleep(LATENCY_S)
        return super().prepare(region, stats)

    def submit(self, job: Job) -> Future[Verdict]:
        time.sleep(LATENCY_S)
        return super().submit(job)


class FakeAsyncJudge(FakePool):
    """The same, without holding up who asks."""

    def submit(self, job: Job) -> Future[Verdict]:
        self.jobs.append(job)
        future: Future[Verdict] = Future()
        timer = threading.Timer(LATENCY_S, lambda: future.set_result(self.verdict(job)))
        timer.daemon = True
        timer.start()
        return future


@cache
def open_fake(target: str) -> FakeSlowJudge:
    """What ``judge.farm.open_pool`` is, for a worker process of a test."""
    return FakeSlowJudge()


class FakeForged:
    installed = True
    model = "the forged model"
    notes: tuple[str, ...] = ()
    measured = StepMeasured("eager", 12.0, 8.0, 1.5, 1.4, 1.6, 0.1, True, True, message="faster")

    def counts(self) -> GuardCounts:
        return GuardCounts(3, {})


def model(x: int) -> int:
    return x


def rooms(judge: Any, places: int = 1, memory: Any = None) -> Rooms:
    return Rooms(
        capture=lambda *args, **kwargs: workload(),
        judge=lambda options: judge() if callable(judge) else judge,
        proposers=lambda options: [FakeProposer()],
        apply=lambda *args, **kwargs: FakeForged(),
        device=lambda options: ("a fake CPU", 2),
        memory=lambda options, run: memory,
        places=lambda options: lambda: places,
    )


def new_run(name: str, store: Store, judge: Any, places: int = 1, trials: int = 8) -> Run:
    options = Options(trials=trials, target="cpu", minutes=2)
    return Run(options, log=EventLog(name, store), rooms=rooms(judge, places))
