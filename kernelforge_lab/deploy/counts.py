"""How often kernels served a call, and why they did not."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

from ..events import GuardCounts


class Counts:
    """Hits are counted without a lock (one atomic step of an iterator); fallbacks, being rare, with one."""

    def __init__(self) -> None:
        self._hits = itertools.count()
        self.hit = self._hits.__next__
        self._lock = threading.Lock()
        self._reasons: Counter[str] = Counter()

    @property
    def hits(self) -> int:
        return int(repr(self._hits)[len("count(") : -1])  # the only look at it that does not step it

    @property
    def fallbacks(self) -> dict[str, int]:
        with self._lock:
            return dict(self._reasons)

    def miss(self, reason: str) -> None:
        with self._lock:
            self._reasons[reason] += 1

    def as_event(self) -> GuardCounts:
        return GuardCounts(self.hits, self.fallbacks)
