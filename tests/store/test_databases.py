"""The same store in SQLite and PostgreSQL; migrations; what goes wrong with a database is said."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, inspect, text

from kernelforge_lab.cli import main
from kernelforge_lab.events import Log, NodeJudged, RunState
from kernelforge_lab.exc import StoreError
from kernelforge_lab.log import EventLog
from kernelforge_lab.store import Store, migrations
from kernelforge_lab.store import database as store_database
from kernelforge_lab.store.models import Base
from kernelforge_lab.store.retention import prunable

from .postgres import wait_until_up
from .test_store import started


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    else:
        url = request.getfixturevalue("postgres").url
    made = Store(url)
    yield made
    made.delete_all([run.id for run in made.runs()])
    made.close()


def test_events_come_back_exactly_also_infinities_and_strange_text(store: Store) -> None:
    log = EventLog("r1", store)
    log.emit(started("r1"))
    log.emit(Log("info", "µs × 2 \x00 \ud800 ' \\ \n"))
    log.emit(NodeJudged(1, "abc", {"max_error": math.inf, "note": None}, 0.5))
    assert Store(store.url).events("r1") == log.events and log.is_kept
    (row,) = store.runs()
    assert (row.id, row.title, row.events) == ("r1", "Toy", 3) and row.is_live


def test_writing_an_event_twice_is_once_and_another_in_its_place_is_an_error(store: Store) -> None:
    said = {"kind": "log", "level": "info", "message": "a", "seq": 1, "at_s": 1.0}
    store.append("r1", said)
    store.append("r1", said)
    assert store.events("r1") == [said]
    with pytest.raises(StoreError, match="Another process wrote"):
        store.append("r1", {**said, "message": "b"})


def test_many_notebooks_open_a_fresh_store_and_write_at_once(
    request: pytest.FixtureRequest, store: Store
) -> None:
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            log = EventLog(name, Store(store.url))
            for number in range(15):
                log.emit(Log("info", str(number)))
            assert log.is_kept
        except BaseException as error:  # noqa: BLE001 - told in the test's thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"r{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted((run.id, run.events) for run in store.runs()) == [(f"r{n}", 15) for n in range(4)]


def columns(store: Store) -> Any:
    found = inspect(store.engine)
    return {
        table: (
            sorted(
                (c["name"], str(c["type"]).split("(")[0], c["nullable"]) for c in found.get_columns(table)
            ),
            found.get_pk_constraint(table)["constrained_columns"],
            sorted(i["name"] or "" for i in found.get_indexes(table)),
        )
        for table in (*Base.metadata.tables, "alembic_version")
    }


def test_the_scripts_make_the_tables_that_a_fresh_store_has(tmp_path: Path) -> None:
    fresh = Store(f"sqlite:///{tmp_path / 'fresh.sqlite'}")
    migrated = store_database._engine(f"sqlite:///{tmp_path / 'migrated.sqlite'}")
    with migrations._alone(migrated) as connection:
        migrations._migrate(connection, stamp=None)
    assert columns(Store(f"sqlite:///{tmp_path / 'migrated.sqlite'}")) == columns(fresh)


def test_a_store_from_before_versions_is_migrated_with_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    engine = store_database._engine(f"sqlite:///{path}")
    with migrations._alone(engine) as connection:
        migrations._migrate(connection, stamp=None)
        connection.execute(text("DROP TABLE alembic_version"))
        connection.execute(text("DROP TABLE proofs"))
        connection.execute(text("ALTER TABLE runs DROP COLUMN owner"))
        connection.execute(text("INSERT INTO runs VALUES ('old', 'Toy', 'cpu', 'finished', 1.0, 2.0)"))
    store = Store(f"sqlite:///{path}")
    assert [(run.id, run.state, run.is_live) for run in store.runs()] == [("old", "finished", False)]
    with store.engine.connect() as connection:
        assert migrations.version(connection) == migrations.HEAD


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer kernelforge-lab"):
        Store(store.url)


def test_a_full_disk_is_said_and_what_was_missed_is_written_once_there_is_space(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    log = EventLog("r1", store)
    log.emit(started("r1"))
    with store.engine.connect() as connection:
        pages = [connection.execute(text("PRAGMA page_count")).scalar()]

    @event.listens_for(store.engine, "connect")
    def _limit(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages[0]}")

    store.engine.dispose()
    for number in range(3):
        log.emit(Log("info", f"{number}" + "x" * 9000))
    warnings = [e["message"] for e in log.events if e["kind"] == "log" and e["level"] == "warning"]
    assert len(warnings) == 1 and "disk is full" in warnings[0] and "runs prune" in warnings[0]
    assert not log.is_kept and len(log.events) == 5
    with pytest.raises(StoreError, match="full"):
        log.save()
    pages[0] = 100_000
    store.engine.dispose()
    log.save()
    assert log.is_kept and store.events("r1") == log.events


def test_a_locked_database_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_database, "_BUSY_TIMEOUT_S", 0.05)
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    log = EventLog("r1", store)
    log.emit(started("r1"))
    other = sqlite3.connect(tmp_path / "runs.sqlite")
    other.execute("BEGIN EXCLUSIVE")
    log.emit(Log("info", "on"))
    assert "locked" in log.events[-1]["message"] and "close that" in log.events[-1]["message"]
    other.rollback()
    log.save()
    assert store.events("r1") == log.events


def test_a_server_that_restarts_costs_nothing(postgres: Any) -> None:
    store = Store(postgres.url)
    log = EventLog("restarted", store)
    log.emit(started("restarted"))
    postgres.stop()
    log.emit(Log("info", "meanwhile"))
    postgres.start()
    wait_until_up(postgres.url)
    log.save()
    log.emit(Log("info", "after"))
    assert log.is_kept and store.events("restarted") == log.events
    store.delete("restarted")


def old_run(store: Store, name: str, days: float, state: str = "finished") -> None:
    at_s = time.time() - days * 86_400
    log = EventLog(name, store, clock=lambda: at_s)
    log.emit(started(name))
    log.emit(RunState(state))


def test_only_old_runs_that_have_ended_are_pruned(store: Store) -> None:
    for name, days, state in [
        ("now", 0.0, "finished"),
        ("week", 7.0, "finished"),
        ("live", 9.0, "running"),
        ("month", 30.0, "stopped"),
    ]:
        old_run(store, name, days, state)
    rows = store.runs()
    assert [run.id for run in prunable(rows, older_than_days=5)] == ["week", "month"]
    assert [run.id for run in prunable(rows, older_than_days=10)] == ["month"]
    assert [run.id for run in prunable(rows, keep=3)] == ["month"]
    assert [run.id for run in prunable(rows, keep=0)] == ["week", "month"]
    assert [run.id for run in prunable(rows, keep=2, older_than_days=20)] == ["month"]


def test_the_command_line_lists_shows_and_prunes(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", store.url)
    old_run(store, "old-1", 40.0)
    old_run(store, "new-1", 0.0)
    assert main(["runs"]) == 0 and main(["runs", "list"]) == 0
    assert capsys.readouterr().out.count("old-1") == 2
    assert main(["runs", "show", "old", "--json"]) == 0
    assert '"run": "old-1"' in capsys.readouterr().out
    assert main(["runs", "prune", "--older-than", "30", "--dry-run"]) == 0
    assert "1 run would be deleted" in capsys.readouterr().out and len(store.runs()) == 2
    assert main(["runs", "prune"]) == 2 and main(["runs", "prune", "nope"]) == 2
    assert main(["runs", "prune", "--older-than", "30", "--json"]) == 0
    assert '{"deleted": ["old-1"]}' in capsys.readouterr().out
    assert main(["runs", "prune", "new-1"]) == 0
    assert store.runs() == []
