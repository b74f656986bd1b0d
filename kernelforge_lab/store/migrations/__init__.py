"""Bringing a store to this version's tables, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text

from ...exc import StoreError
from ..models import Base

# The newest script in versions/; a test holds them together.
HEAD: Final = "0002"
# What a store looked like before it knew its version.
_UNNUMBERED: Final = "0001"
# Two notebooks may open a fresh store at the same moment; any number, as long as nobody else uses it.
_LOCK: Final = 7_263_105
# As alembic makes its table.
_KEY: Final = "NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY"


def upgrade(engine: Engine) -> None:
    """Make or migrate the tables. Raises StoreError for a store of a newer version, else SQLAlchemy's."""
    with engine.connect() as connection:
        if _is_current(version(connection)):
            return
    with _alone(engine) as connection:
        found = version(connection)
        if found is None:
            _make(connection)
        elif not _is_current(found):
            _migrate(connection, stamp=_UNNUMBERED if found == "" else None)


def version(connection: Connection) -> str | None:
    """The store's version; "" for tables without one, None for an empty database."""
    tables = set(inspect(connection).get_table_names())
    if "alembic_version" in tables:
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        if found:
            return str(found)
    return "" if "runs" in tables else None


def _is_current(found: str | None) -> bool:
    if found and found > HEAD:
        raise StoreError(
            f"The run store was made by a newer kernelforge-lab (its version {found}, known is {HEAD}).",
            "Upgrade kernelforge-lab, or set KERNELFORGE_STORE to another place.",
        )
    return found == HEAD


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction that nobody else's migration gets into; all of it happens or nothing."""
    if engine.dialect.name != "sqlite":
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            yield connection
        return
    # Python's sqlite3 commits before every CREATE unless the transaction is begun by hand.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("BEGIN IMMEDIATE"))
        try:
            yield connection
        except BaseException:
            connection.execute(text("ROLLBACK"))
            raise
        connection.execute(text("COMMIT"))


def _make(connection: Connection) -> None:
    """A fresh store needs no history; a test holds the tables to what the scripts would have made."""
    Base.metadata.create_all(connection)
    connection.execute(text(f"CREATE TABLE alembic_version (version_num VARCHAR(32) {_KEY})"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def _migrate(connection: Connection, stamp: str | None) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    if stamp:
        command.stamp(config, stamp)
    command.upgrade(config, "head")
