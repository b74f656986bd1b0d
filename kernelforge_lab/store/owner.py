"""Which process writes a run, and whether it is still there."""

from __future__ import annotations

import os
import socket
from functools import cache
from typing import Final

# A search says something every second or so; one that was silent this long on another machine has gone.
SILENT_S: Final = 60.0


@cache
def _host() -> str:
    return socket.gethostname()[:60]


def me() -> str:
    """This process: host, process id and when it started, which tells it from a later one of that id."""
    return _process(os.getpid())


@cache
def _process(number: int) -> str:
    import psutil

    return f"{_host()}/{number}/{psutil.Process(number).create_time():.2f}"


def is_gone(owner: str, silent_s: float) -> bool:
    """Whether nobody writes the run any more: its process has ended, or was silent for long elsewhere."""
    import psutil

    if not owner:
        return True
    try:
        host, number, started = owner.rsplit("/", 2)
        if host != _host():
            return silent_s > SILENT_S
        return bool(abs(psutil.Process(int(number)).create_time() - float(started)) > 1.0)
    except (ValueError, psutil.Error):
        return True
