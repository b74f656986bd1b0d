"""A PostgreSQL server of the tests' own: a fresh cluster on a free port, run by an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


class Postgres:
    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="kernelforge-postgres-"))
        if self._user:
            entry = pwd.getpwnam(self._user)
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._data = self._folder / "data"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "forge", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://forge@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        settings = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = self._folder / "log"
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "-t", "60", "-o", settings, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def cut_connections(self) -> None:
        """As a network or an administrator would."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            group=pwd.getpwnam(self._user).pw_gid if self._user else None,
            cwd=self._folder,
            timeout=120,
        )


def start() -> Postgres:
    """A running server; skips the test, saying why, where there is none and none can be installed."""
    programs = _programs() or _install()
    if programs is None:
        pytest.skip("no PostgreSQL server here, and apt-get install postgresql is not possible")
    return Postgres(programs)


def _programs() -> Path | None:
    found = shutil.which("pg_ctl")
    if found:
        # Debian's are links into a folder that has all of them.
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def _install() -> Path | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    for command in (["update"], ["install", "-y", "--no-install-recommends", "postgresql"]):
        done = subprocess.run(
            ["apt-get", "-qq", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=240,
            check=False,
        )
        if done.returncode:
            return None
    return _programs()


def _unprivileged() -> str | None:
    """initdb refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def wait_until_up(url: str, limit_s: float = 20.0) -> None:
    import psycopg

    deadline = time.monotonic() + limit_s
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
