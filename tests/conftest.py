"""What every test can count on: its own kernel cache and store, and a skip where a device or browser is missing."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kernels and runs of tests never enter, and never come from, the person's cache and store."""
    folder = tmp_path_factory.mktemp("kernelforge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELFORGE_CACHE", str(folder / "kernels"))
        patch.setenv("KERNELFORGE_STORE", f"sqlite:///{folder / 'runs.sqlite'}")
        yield folder


@pytest.fixture(autouse=True)
def no_kernels_of_other_tests(own_places: Path) -> Iterator[None]:
    """What one test proved must not spare another one its search."""
    yield
    path = own_places / "runs.sqlite"
    if path.exists():
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM proofs")


@pytest.fixture(autouse=True)
def main_module_stays() -> Iterator[None]:
    """An IPython shell in this process puts its own module at ``__main__``, from which nothing can be spawned."""
    ours = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = ours


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Fast ones first; and a browser's driver leaves an event loop running in this thread.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    missing = {
        "browser": None if _chromium() else "no Chromium on this machine (make test installs one)",
        "gpu": None if shutil.which("nvidia-smi") else "no NVIDIA GPU on this machine",
    }
    for item in items:
        for marker, reason in missing.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
