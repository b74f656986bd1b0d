"""How much of the machine other processes used while something was timed (Linux; elsewhere unknown)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

# Others using this share of all processors make times rough; the verdict then says so.
NOTEWORTHY: Final = 0.15


class Contention:
    """Started at construction; ``share()`` is the fraction of all processor time that others took since.

    ``pids`` are processes of ours besides this one.
    """

    def __init__(self, pids: Sequence[int] = ()) -> None:
        self._pids = pids
        self._begin = self._read()

    def share(self) -> float:
        """0 to 1; 0 when it cannot be told."""
        begin, end = self._begin, self._read()
        total, busy, own = (after - before for before, after in zip(begin, end, strict=True))
        return max(0.0, min(1.0, (busy - own) / total)) if total > 0 else 0.0

    def _read(self) -> tuple[float, float, float]:
        """(all, busy, ours) in clock ticks."""
        try:
            ticks = [float(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        except OSError:
            return 0.0, 0.0, 0.0
        idle = ticks[3] + ticks[4]
        own = sum(os.times()[:2]) * os.sysconf("SC_CLK_TCK")
        return sum(ticks), sum(ticks) - idle, own + sum(map(_ticks_of, self._pids))


def _ticks_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return float(fields[11]) + float(fields[12])
