"""One measurement at a time per device and machine: two notebooks must not disturb each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..targets.cache import cache_root

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; its processes then do disturb each other
    fcntl = None  # type: ignore[assignment]


class DeviceLock:
    """``device`` names what is measured. The lock is a file's, so the system frees it when a holder dies."""

    def __init__(self, device: str, folder: Path | None = None) -> None:
        self.path = (folder or cache_root() / "locks") / f"{device}.lock"
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits until nobody else on this machine measures on the device. May be nested."""
        if self._depth or fcntl is None:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._depth = 1
            yield
        finally:
            self._depth = 0
            os.close(descriptor)
