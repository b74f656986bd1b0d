"""Judges behind any executor, and a search that keeps sixty-four of them busy."""

from __future__ import annotations

import heapq
import itertools
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from kernelforge_lab.exc import ProblemError, WorkerDied
from kernelforge_lab.judge.farm import JudgeFarm, places
from kernelforge_lab.judge.job import Job, Stock
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.log import EventLog
from kernelforge_lab.search.agent import Agent
from kernelforge_lab.search.budget import Budget, Ledger
from kernelforge_lab.search.forest import Forest
from tests.search.fakes import ROOFS, FakePool, FakeProposer, draw, item, region

from .fakes import open_fake

WORKERS = 64


def job(text: str = "one") -> Job:
    place = region(512)
    return Job(place, Kernel(f"// forge: target cpu\npath /{text}\n", place.hash, "cpu"))


def test_any_executor_gives_the_verdicts_of_its_workers_own_judge() -> None:
    with ThreadPoolExecutor(3) as executor:
        farm = JudgeFarm("cpu", executor, open_judge=open_fake)
        assert farm.prepare(region(512)).result(10).best == "compiled"
        jobs = [job(str(number)) for number in range(6)]
        assert [f.result(10) for f in [farm.submit(j) for j in jobs]] == [FakePool().verdict(j) for j in jobs]
        farm.close()
        assert executor.submit(int).result(10) == 0, "an executor that was given is not shut down"


class FakeLostExecutor:
    """Every worker dies on everything."""

    def __init__(self) -> None:
        self.sent = 0

    def submit(self, *_: Any) -> Future[Any]:
        self.sent += 1
        future: Future[Any] = Future()
        future.set_exception(type("KilledWorker", (Exception,), {})("worker gone"))
        return future

    def shutdown(self, **_: Any) -> None:
        pass


def test_a_kernel_that_takes_three_workers_along_has_crashed_them() -> None:
    executor = FakeLostExecutor()
    farm = JudgeFarm("cpu", executor)
    verdict = farm.submit(job()).result(10)
    assert verdict.status is Status.CRASHED and "3 workers died" in verdict.evidence
    with pytest.raises(WorkerDied, match="cannot judge"):
        farm.prepare(region(512)).result(10)
    assert executor.sent == 6


def test_a_broken_executor_is_replaced_where_we_can_make_another() -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(FakeLostExecutor() if len(made) < 2 else ThreadPoolExecutor(1))
        return made[-1]

    farm = JudgeFarm("cpu", make, open_judge=open_fake)
    assert farm.submit(job()).result(10) == FakePool().verdict(job())
    assert len(made) == 3
    farm.close()


def test_what_is_no_executor_is_said() -> None:
    with pytest.raises(ProblemError, match=r"a int has no submit\(\)"):
        JudgeFarm("cpu", 3)


def test_places_are_an_executors_workers_and_one_without() -> None:
    assert places(None)() == 1
    with ThreadPoolExecutor(5) as executor:
        assert places(executor)() == 5


class FakeCluster(FakePool):
    """Sixty-four workers in virtual time: latencies of seconds, as they were measured, and no waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.busy_s = 0.0
        self.running: list[tuple[float, int, Future[Any], Any, float]] = []
        self.samples: list[tuple[float, int]] = []
        self._numbers = itertools.count()

    def verdict(self, job: Job) -> Verdict:
        """A landscape in which good kernels lead to better ones, so that searches take their time."""
        verdict = super().verdict(job)
        if verdict.timing is None:
            return verdict
        depth = job.kernel.source.split("path ")[1].count("/")
        speedup = (0.75 + 0.5 * draw("luck", job.kernel.source, job.region.hash)) * 1.3**depth
        low = speedup * 0.98
        timing = replace(verdict.timing, speedup=speedup, low=low, high=speedup * 1.02)
        return replace(verdict, status=Status.FASTER if low > 1 else Status.SLOWER, timing=timing)

    def prepare(self, region: Any, stats: Any = ()) -> Future[Stock]:
        ready = super().prepare(region, stats).result()
        return self._later(ready, 8 + 14 * draw("stock", region.hash))

    def submit(self, job: Job) -> Future[Verdict]:
        verdict = self.verdict(job)
        # Compile errors come back at once, proofs and paired timing take seconds, some kernels many.
        took_s = 0.7 if verdict.status is Status.COMPILE_ERROR else 2.5 + 4 * draw("s", job.kernel.hash) ** 3
        return self._later(verdict, took_s)

    def _later(self, result: Any, took_s: float) -> Future[Any]:
        future: Future[Any] = Future()
        entry = (self.now_s + took_s, next(self._numbers), future, result, took_s)
        heapq.heappush(self.running, entry)
        assert len(self.running) <= WORKERS, "more work than workers"
        return future

    def advance(self) -> None:
        at_s, _, future, result, _ = heapq.heappop(self.running)
        self.busy_s += (len(self.running) + 1) * max(0.0, at_s - self.now_s)
        self.now_s = max(self.now_s, at_s)
        future.set_result(result)


class SimulatedAgent(Agent):
    """Where the agent would wait, virtual time goes on instead; its own thinking counts in seconds."""

    cluster: FakeCluster
    thought_s = 0.0
    _since = 0.0

    def _wait(self) -> None:
        if any(
            not t.future.done() and all(t.future is not r[2] for r in self.cluster.running)
            for t in self._tasks
        ):
            super()._wait()  # a proposer is writing, in a thread
            return
        spent_s = time.thread_time() - self._since if self._since else 0.0
        self.thought_s += spent_s
        self.cluster.busy_s += sum(min(spent_s, r[0] - self.cluster.now_s) for r in self.cluster.running)
        self.cluster.now_s += spent_s
        if self.cluster.running:
            self.cluster.advance()
        self._since = time.thread_time()


def test_sixty_four_workers_are_kept_busy() -> None:
    cluster = FakeCluster()
    items = [item(region(128 + n), 0.9 / 24, time_us=100.0, floor_us=0.5) for n in range(24)]
    forest = Forest(items, [FakeProposer(strategies=12, depth=12, tune=False)], "cpu", roofs=ROOFS)
    trials = 2200
    agent = SimulatedAgent(
        forest,
        cluster,
        Ledger(Budget(trials, 1e6)),
        EventLog("simulated").emit,
        places=lambda: WORKERS,
    )
    agent.cluster = cluster
    busy: list[tuple[float, float]] = []
    agent.emit = agent.bench.emit = _noting(agent, cluster, busy)
    agent.start()
    assert agent.done.wait(60)
    assert agent.ledger.trials > trials / 2, "it ended for want of ideas"
    busy_s, now_s = busy[-1]
    assert busy_s / (WORKERS * now_s) >= 0.9, f"{busy_s / (WORKERS * now_s):.1%} of {now_s:.0f} s"


def _noting(agent: Agent, cluster: FakeCluster, busy: list[tuple[float, float]]) -> Any:
    """Remember how busy the cluster was while there were more kernels left to try than workers."""

    def emit(event: Any) -> None:
        if event.kind == "node_added" and agent.ledger.trials < agent.ledger.budget.trials - WORKERS:
            busy.append((cluster.busy_s, cluster.now_s))

    return emit
