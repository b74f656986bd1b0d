from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import postgres as server


@pytest.fixture(scope="session")
def postgres() -> Iterator[server.Postgres]:
    running = server.start()
    yield running
    running.remove()
