"""Reading and writing runs. Every method raises StoreError, never SQLAlchemy's own exceptions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs
from sqlalchemy import Engine, create_engine, delete, event, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from ..exc import StoreError
from .models import Base, EventRow, RunRow

# Another notebook may be writing; a commit takes well under a millisecond, so this is patience enough.
_BUSY_TIMEOUT_S: Final = 5.0

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


class Store:
    """Runs in the database at ``url`` (any SQLAlchemy URL); safe to use from several threads."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or default_url()
        with _errors(f"cannot open the run store {self.url!r}"):
            self._engine = _engine(self.url)
            Base.metadata.create_all(self._engine)

    def append(self, run: str, data: dict[str, Any]) -> None:
        """Write one event (with its ``seq`` and ``at_s``); the first of a run makes the run."""
        with _errors("cannot write to the run store"), Session(self._engine) as session:
            if data["seq"] == 1:
                session.add(RunRow(id=run, started_at=data["at_s"], updated_at=data["at_s"]))
                session.flush()
            session.execute(
                insert(EventRow).values(
                    run=run, seq=data["seq"], at_s=data["at_s"], kind=data["kind"], body=data
                )
            )
            changes = _summary(data)
            if changes:
                session.execute(
                    update(RunRow).where(RunRow.id == run).values(updated_at=data["at_s"], **changes)
                )
            session.commit()

    def events(self, run: str, after: int = 0) -> list[dict[str, Any]]:
        """Events of a run in order, from the first past ``after``; [] for an unknown run."""
        query = select(EventRow.body).where(EventRow.run == run, EventRow.seq > after).order_by(EventRow.seq)
        with _errors("cannot read the run store"), Session(self._engine) as session:
            return list(session.scalars(query))

    def runs(self) -> list[StoredRun]:
        """All runs, newest first."""
        count = select(func.count()).where(EventRow.run == RunRow.id).scalar_subquery()
        query = select(RunRow, count).order_by(RunRow.started_at.desc())
        with _errors("cannot read the run store"), Session(self._engine) as session:
            return [
                StoredRun(row.id, row.title, row.target, row.state, row.started_at, row.updated_at, events)
                for row, events in session.execute(query)
            ]

    def spent_usd(self, since: float, besides: str = "") -> float:
        """Dollars that model calls have cost since a Unix time, in all runs but one."""
        query = select(EventRow.body).where(
            EventRow.kind == "model_called", EventRow.at_s >= since, EventRow.run != besides
        )
        with _errors("cannot read the run store"), Session(self._engine) as session:
            return sum(float(body["usd"]) for body in session.scalars(query))

    def delete(self, run: str) -> bool:
        """Remove a run and its events; False when there is none of that name."""
        with _errors("cannot write to the run store"), Session(self._engine) as session:
            session.execute(delete(EventRow).where(EventRow.run == run))
            gone = session.execute(delete(RunRow).where(RunRow.id == run).returning(RunRow.id)).all()
            session.commit()
            return bool(gone)

    def close(self) -> None:
        self._engine.dispose()


def _summary(data: dict[str, Any]) -> dict[str, str]:
    if data["kind"] == "run_started":
        return {"title": data["title"][:_TITLE_LENGTH], "target": data["target"], "state": "starting"}
    return {"state": data["state"]} if data["kind"] == "run_state" else {}


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
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
def _errors(what: str) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, ImportError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise StoreError(
            f"{what}: {reason}.", "Set KERNELFORGE_STORE to another place, or free space; the run goes on."
        ) from error
