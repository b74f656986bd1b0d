"""Kernel, worker, database connection and Dask worker are killed at random points of fifty short runs.

Nothing is lost, nothing hangs, everything goes on: the events that were shown are still there, every
kernel gets its verdict, no verdict is asked for twice, and the budget holds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab.judge.farm import JudgeFarm
from kernelforge_lab.log import EventLog
from kernelforge_lab.run import Run
from kernelforge_lab.search.memory import LIBRARY
from kernelforge_lab.store import Store
from tests.scale.fakes import FakeAsyncJudge, model, new_run, open_fake, rooms

from .postgres import Postgres

KERNEL_RUNS, WORKER_RUNS, CONNECTION_RUNS, DASK_RUNS = 16, 14, 10, 10
TRIALS = 8
LIMIT_S = 60


def check(store: Store, run: Run, before: list[dict[str, Any]] = []) -> None:  # noqa: B006
    events = store.events(run.id)
    assert run.state == "finished", run.history.message
    assert events == run.log.events and run.log.is_kept
    assert events[: len(before)] == before
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    added = [event["node"] for event in events if event["kind"] == "node_added"]
    judged = Counter(event["node"] for event in events if event["kind"] == "node_judged")
    assert len(added) == len(set(added)) and set(added) == set(judged)
    history = run.history
    assert history.step["installed"] and len(history.winners()) == 2
    trials = [
        n for n in history.nodes.values() if n.status not in ("stock", "duplicate") and n.proposer != LIBRARY
    ]
    assert len(trials) <= TRIALS


def child(url: str, name: str) -> None:
    """A notebook's kernel that will be killed."""
    store = Store(url)
    new_run(name, store, FakeAsyncJudge).start(model, (1,)).wait(LIMIT_S)


def test_a_killed_kernel_loses_nothing_that_was_shown(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.test_faults", "tests.store.preload"])
    ends: list[str] = []
    for number in range(KERNEL_RUNS):
        url = postgres.url if number % 2 else f"sqlite:///{tmp_path / 'runs.sqlite'}"
        name = f"kernel-{number}"
        process = context.Process(target=child, args=(url, name))
        process.start()
        store = Store(url)
        until(lambda store=store, name=name: len(store.events(name)) > chance.randrange(2, 30))
        assert process.pid
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        before = store.events(name)
        monkeypatch.setenv("KERNELFORGE_STORE", url)
        run = Run(log=EventLog.of_past(name, before), rooms=rooms(FakeAsyncJudge))
        ends.append(run.state)
        run.resume(model, (1,)).wait(LIMIT_S)
        check(store, run, before)
        store.close()
    assert set(ends) & {"running", "starting", "measuring"}, "no run was hit while it was at work"


def test_killed_workers_of_an_executor_are_replaced(tmp_path: Path) -> None:
    chance = random.Random(2)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.test_faults", "tests.store.preload"])
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    replaced = 0
    for number in range(WORKER_RUNS):
        made: list[ProcessPoolExecutor] = []

        def make(made: list[ProcessPoolExecutor] = made) -> ProcessPoolExecutor:
            made.append(ProcessPoolExecutor(2, mp_context=context))
            return made[-1]

        def kill(made: list[ProcessPoolExecutor] = made) -> None:
            for pid in list((made[-1]._processes if made else None) or ()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        run = new_run(
            f"worker-{number}", store, lambda make=make: JudgeFarm("cpu", make, open_judge=open_fake), 2
        )
        run.start(model, (1,))
        at_random_points(run, chance, kill, times=1 + number % 2)
        check(store, run.wait(LIMIT_S))
        replaced += len(made) - 1
    assert replaced >= WORKER_RUNS // 2, "too few kills fell into a judgement"


def test_cut_database_connections_are_made_again(postgres: Postgres) -> None:
    chance = random.Random(3)
    store = Store(postgres.url)
    for number in range(CONNECTION_RUNS):
        run = new_run(f"connection-{number}", store, FakeAsyncJudge)
        run.start(model, (1,))
        at_random_points(run, chance, postgres.cut_connections, times=3)
        check(store, run.wait(LIMIT_S))
    store.close()


def test_dask_workers_that_die_leave_or_join_lose_nothing(tmp_path: Path, cluster: Any) -> None:
    from distributed import Client

    chance = random.Random(4)
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    with Client(cluster) as client:
        kinds = {
            "die": lambda: kill_one(cluster, chance),
            "join": lambda: cluster.scale(3),
            "leave": lambda: cluster.scale(1),
        }
        for number in range(DASK_RUNS):
            farm = JudgeFarm("cpu", client, open_judge=open_fake)
            run = new_run(f"dask-{number}", store, farm, 2)
            run.start(model, (1,))
            fault = kinds["die"] if number not in (3, 6) else kinds["join" if number == 3 else "leave"]
            at_random_points(run, chance, fault, times=1)
            check(store, run.wait(LIMIT_S))


@pytest.fixture
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as running:
        yield running


def kill_one(cluster: Any, chance: random.Random) -> None:
    nanny = chance.choice(list(cluster.workers.values()))
    if nanny.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(nanny.pid, signal.SIGKILL)


def at_random_points(run: Run, chance: random.Random, fault: Callable[[], object], times: int) -> None:
    """Do it when the run has told a random number of events (fewer than a run has)."""
    for _ in range(times):
        point = len(run.log.events) + chance.randrange(1, 12)
        until(lambda point=point: len(run.log.events) >= point or not run.is_running)
        fault()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.003)


def test_they_are_fifty_runs() -> None:
    assert KERNEL_RUNS + WORKER_RUNS + CONNECTION_RUNS + DASK_RUNS == 50
