"""The tables. ``migrations/`` makes them; a test holds both to be the same."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Dialect, Float, ForeignKey, Integer, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class Document(TypeDecorator[Any]):
    """JSON as text: a database's own JSON type refuses the infinities that a verdict may hold."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:  # noqa: ARG002
        # Escaped: neither a NUL character nor half a surrogate pair reaches the database.
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


class Base(DeclarativeBase):
    pass


class RunRow(Base):
    """One run; ``state`` and ``updated_at`` follow its events. Times are Unix seconds.

    ``owner`` is the process that writes it (``store.owner``), empty for a run nobody holds.
    """

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    title: Mapped[str] = mapped_column(String(200), default="")
    target: Mapped[str] = mapped_column(String(32), default="")
    state: Mapped[str] = mapped_column(String(32), default="")
    started_at: Mapped[float] = mapped_column(Float, index=True)
    updated_at: Mapped[float] = mapped_column(Float)
    owner: Mapped[str] = mapped_column(String(120), default="", server_default="")


class EventRow(Base):
    """One event as JSON, numbered within its run; ``at_s`` is Unix seconds."""

    __tablename__ = "events"

    run: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(Integer, primary_key=True)
    at_s: Mapped[float] = mapped_column(Float)
    kind: Mapped[str] = mapped_column(String(32))
    body: Mapped[dict[str, Any]] = mapped_column(Document)


class ProofRow(Base):
    """A kernel that was proven faster than stock for a region on a device; outlives its run."""

    __tablename__ = "proofs"

    region: Mapped[str] = mapped_column(String(16), primary_key=True)
    target: Mapped[str] = mapped_column(String(32), primary_key=True)
    device: Mapped[str] = mapped_column(String(120), primary_key=True)
    kernel: Mapped[str] = mapped_column(String(16), primary_key=True)
    speedup: Mapped[float] = mapped_column(Float)
    found_at: Mapped[float] = mapped_column(Float)
    body: Mapped[dict[str, Any]] = mapped_column(Document)
