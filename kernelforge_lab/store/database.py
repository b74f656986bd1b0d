"""Reading and writing runs. Every method raises StoreError, never SQLAlchemy's own exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs
from sqlalchemy import Engine, create_engine, delete, event, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from ..events import ENDED
from ..exc import StoreError
from . import migrations, owner
from .models import EventRow, RunRow

# Another notebook may be writing; a commit takes well under a millisecond, so this is patience enough.
_BUSY_TIMEOUT_S: Final = 5.0
# A server that restarts, or a connection that was cut, is tried again at once and then a little later.
_RETRY_S: Final = (0.0, 0.2, 1.0)

_TITLE_LENGTH: Final = 200


def default_url() -> str:
    """``KERNELFORGE_STORE`` or a SQLite file in the user's data directory."""
    url = os.environ.get("KERNELFORGE_STORE")
    if url:
        return url
    return f"sqlite:///{Path(platformdirs.user_data_dir('kernelforge-lab')) / 'runs.sqlite'}"


@dataclass(frozen=True)
class StoredRun:
    """A line of ``Store.runs``. Times are Unix seconds."""

    id: str
    title: str
    target: str
    state: str
    started_at: float
    updated_at: float
    events: int
    owner: str = ""

    @property
    def is_live(self) -> bool:
        """Whether a process is still at work on it."""
        return self.state not in ENDED and not owner.is_gone(self.owner, time.time() - self.updated_at)


class Store:
    """Runs in the database at ``url`` (any SQLAlchemy URL); safe to use from several threads."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or default_url()
        with errors("cannot open the run store"):
            self.engine = _engine(self.url)
            migrations.upgrade(self.engine)

    def append(self, run: str, data: dict[str, Any]) -> None:
        """Write one event (with its ``seq`` and ``at_s``); the first of a run makes the run.

        Safe to repeat: an event that is there already is left alone. Only the process that made or
        claimed a run may write it.
        """
        with errors("cannot write to the run store"):
            for pause_s in _RETRY_S:
                try:
                    self._append(run, data)
                    return
                except IntegrityError:
                    self._must_be_there(run, data)
                    return
                except DBAPIError as error:
                    if not error.connection_invalidated or pause_s == _RETRY_S[-1]:
                        raise
                    # The whole pool is of a server that went away.
                    self.engine.dispose()
                    time.sleep(pause_s)

    def _append(self, run: str, data: dict[str, Any]) -> None:
        mine = owner.me()
        with Session(self.engine) as session:
            if data["seq"] == 1:
                session.add(RunRow(id=run, started_at=data["at_s"], updated_at=data["at_s"], owner=mine))
                session.flush()
            changes = {"updated_at": data["at_s"], **_summary(data)}
            held = update(RunRow).where(RunRow.id == run, RunRow.owner == mine)
            touched = session.execute(held.values(**changes).returning(RunRow.id)).all()
            if not touched:
                raise StoreError("Another process goes on with this run, or it was deleted.")
            session.execute(
                insert(EventRow).values(
                    run=run, seq=data["seq"], at_s=data["at_s"], kind=data["kind"], body=data
                )
            )
            session.commit()

    def _must_be_there(self, run: str, data: dict[str, Any]) -> None:
        """An earlier try reached the database although its answer did not reach us. Raises StoreError."""
        there = self.events(run, data["seq"] - 1)
        if not there or {**there[0], "at_s": 0} != {**data, "at_s": 0}:
            raise StoreError("Another process wrote to this run.")

    def claim(self, run: str) -> None:
        """Make this process the one that writes ``run``. Raises StoreError while another one does."""
        with errors("cannot write to the run store"), Session(self.engine) as session:
            row = session.execute(select(RunRow).where(RunRow.id == run)).scalar_one_or_none()
            if row is None:
                raise StoreError(f"There is no run {run} in the store.")
            mine, before = owner.me(), row.owner
            silent_s = time.time() - row.updated_at
            if before != mine and row.state not in ENDED and not owner.is_gone(before, silent_s):
                raise StoreError(
                    f"Run {run} is at work in another process ({before.rsplit('/', 1)[0]}).",
                    "Stop it there, or wait until that process has ended.",
                )
            # Of two that try at once, the second finds the owner changed.
            change = update(RunRow).where(RunRow.id == run, RunRow.owner == before).values(owner=mine)
            if not session.execute(change.returning(RunRow.id)).all():
                raise StoreError(f"Run {run} was just taken up by another process.")
            session.commit()

    def events(self, run: str, after: int = 0) -> list[dict[str, Any]]:
        """Events of a run in order, from the first past ``after``; [] for an unknown run."""
        query = select(EventRow.body).where(EventRow.run == run, EventRow.seq > after).order_by(EventRow.seq)
        with errors("cannot read the run store"), Session(self.engine) as session:
            return list(session.scalars(query))

    def runs(self) -> list[StoredRun]:
        """All runs, newest first."""
        count = select(func.count()).where(EventRow.run == RunRow.id).scalar_subquery()
        query = select(RunRow, count).order_by(RunRow.started_at.desc())
        with errors("cannot read the run store"), Session(self.engine) as session:
            return [
                StoredRun(
                    row.id,
                    row.title,
                    row.target,
                    row.state,
                    row.started_at,
                    row.updated_at,
                    events,
                    row.owner,
                )
                for row, events in session.execute(query)
            ]

    def spent_usd(self, since: float, besides: str = "") -> float:
        """Dollars that model calls have cost since a Unix time, in all runs but one."""
        query = select(EventRow.body).where(
            EventRow.kind == "model_called", EventRow.at_s >= since, EventRow.run != besides
        )
        with errors("cannot read the run store"), Session(self.engine) as session:
            return sum(float(body["usd"]) for body in session.scalars(query))

    def delete(self, run: str) -> bool:
        """Remove a run and its events; False when there is none of that name."""
        return bool(self.delete_all([run]))

    def delete_all(self, runs: Collection[str]) -> list[str]:
        """Remove runs with their events; the names of those that were there. Proven kernels stay."""
        with errors("cannot write to the run store"), Session(self.engine) as session:
            session.execute(delete(EventRow).where(EventRow.run.in_(runs)))
            gone = session.scalars(delete(RunRow).where(RunRow.id.in_(runs)).returning(RunRow.id)).all()
            session.commit()
            return list(gone)

    def compact(self) -> None:
        """Give the space of deleted runs back to the file system (SQLite keeps it otherwise)."""
        if self.engine.dialect.name == "sqlite":
            with errors("cannot compact the run store"), self.engine.connect() as connection:
                plain = connection.execution_options(isolation_level="AUTOCOMMIT")
                plain.execute(text("VACUUM"))

    def close(self) -> None:
        self.engine.dispose()


def _summary(data: dict[str, Any]) -> dict[str, str]:
    if data["kind"] == "run_started":
        return {"title": data["title"][:_TITLE_LENGTH], "target": data["target"], "state": "starting"}
    return {"state": data["state"]} if data["kind"] == "run_state" else {}


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        # The URL a server's documentation names; ours is the driver that comes with the extra.
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        return create_engine(url, pool_pre_ping=True)
    path = url.partition(":///")[2].partition("?")[0]
    options: dict[str, Any] = {"connect_args": {"timeout": _BUSY_TIMEOUT_S}}
    if path in ("", ":memory:"):
        # One shared connection: each would otherwise be a database of its own.
        options |= {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    else:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, **options)

    @event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        # WAL lets a report read while the run writes; NORMAL survives a killed process, not a power cut.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


@contextmanager
def errors(what: str) -> Iterator[None]:
    """Turn the database's errors into a StoreError that says what to do; its URL is never shown whole."""
    try:
        yield
    except (SQLAlchemyError, ImportError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise StoreError(f"{what}: {reason}.", _way_out(reason)) from error


def _way_out(reason: str) -> str:
    if "disk is full" in reason or "No space left" in reason:
        return "Free space on its disk (kernelforge runs prune), or set KERNELFORGE_STORE to another place."
    if "locked" in reason:
        return "Another program holds it: close that, or set KERNELFORGE_STORE to another place."
    return "Set KERNELFORGE_STORE to another place, or free space; the run goes on."
