"""What every test can count on: its own kernel cache, and a skip where a device or browser is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels built by tests never enter, and never come from, the person's cache."""
    before = os.environ.get("KERNELFORGE_CACHE")
    os.environ["KERNELFORGE_CACHE"] = str(tmp_path_factory.mktemp("kernels"))
    yield
    if before is None:
        del os.environ["KERNELFORGE_CACHE"]
    else:
        os.environ["KERNELFORGE_CACHE"] = before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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
