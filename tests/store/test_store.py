"""Runs are kept event by event, in any database, and survive another process reading along."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from kernelforge_lab.events import Log, RunStarted, RunState
from kernelforge_lab.exc import StoreError
from kernelforge_lab.log import EventLog
from kernelforge_lab.store import Store, default_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'deep' / 'runs.sqlite'}"


def started(run: str) -> RunStarted:
    return RunStarted(
        run, "Toy", "cpu", "a CPU", "region", 0, ["templates"], {"trials": 3}, 1.0, 0.9, 1.5, {}, [], [], []
    )


def test_events_come_back_as_they_were_written(url: str) -> None:
    store = Store(url)
    log = EventLog("r1", store)
    log.emit(RunState("starting", "capturing"))
    log.emit(started("r1"))
    log.emit(Log("info", "µs × 2"))
    assert Store(url).events("r1") == log.events
    assert [event["kind"] for event in store.events("r1", after=2)] == ["log"]
    assert store.events("nobody") == []


def test_runs_are_listed_newest_first_with_their_state(url: str) -> None:
    store = Store(url)
    for number, name in enumerate(["old", "new"]):
        log = EventLog(name, store, clock=lambda at=number: float(at))
        log.emit(started(name))
        log.emit(RunState("finished"))
    rows = store.runs()
    assert [(r.id, r.title, r.target, r.state, r.events) for r in rows] == [
        ("new", "Toy", "cpu", "finished", 2),
        ("old", "Toy", "cpu", "finished", 2),
    ]


def test_deleting_a_run_takes_its_events_along(url: str) -> None:
    store = Store(url)
    EventLog("r1", store).emit(started("r1"))
    assert store.delete("r1") is True
    assert store.delete("r1") is False
    assert store.runs() == [] and store.events("r1") == []


def test_a_second_connection_reads_while_the_run_writes(url: str, tmp_path: Path) -> None:
    store = Store(url)
    EventLog("r1", store).emit(started("r1"))
    other = sqlite3.connect(tmp_path / "deep" / "runs.sqlite")
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM events").fetchone() == (1,)
    EventLog("r2", store).emit(started("r2"))
    assert len(Store(url).runs()) == 2
    other.close()


def test_a_store_in_memory_is_one_store_for_all_threads() -> None:
    store = Store("sqlite://")
    log = EventLog("r1", store)
    thread = threading.Thread(target=lambda: log.emit(started("r1")))
    thread.start()
    thread.join()
    assert store.events("r1") == log.events


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", url)
    assert default_url() == url
    monkeypatch.delenv("KERNELFORGE_STORE")
    assert "kernelforge-lab" in default_url()


@pytest.mark.parametrize("bad", ["nonsense", "sqlite:////proc/nowhere/runs.sqlite", "oracle+none://x"])
def test_a_store_that_cannot_open_says_so_with_a_way_out(bad: str) -> None:
    with pytest.raises(StoreError, match="KERNELFORGE_STORE"):
        Store(bad)


def test_a_failing_store_warns_once_and_the_run_goes_on_in_memory(url: str, tmp_path: Path) -> None:
    store = Store(url)
    log = EventLog("r1", store)
    log.emit(started("r1"))
    broken = sqlite3.connect(tmp_path / "deep" / "runs.sqlite")
    broken.execute("DROP TABLE events")
    broken.close()
    for _ in range(3):
        log.emit(Log("info", "on"))
    warnings = [e for e in log.events if e["kind"] == "log" and e["level"] == "warning"]
    assert len(warnings) == 1 and "not being saved" in warnings[0]["message"]
    assert [e["seq"] for e in log.events] == [1, 2, 3, 4, 5]
    assert not log.is_kept
