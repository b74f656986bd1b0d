"""The judge as the search sees it: opened when first needed, closed when the agent is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from ..judge.job import Job, Stock
from ..judge.verdict import Verdict
from ..kernels.region import Region
from ..kernels.stats import InputStats


class Judge(Protocol):
    """What the search needs of ``judge.pool.JudgePool``."""

    def prepare(self, region: Region, stats: tuple[InputStats, ...]) -> Future[Stock]: ...
    def submit(self, job: Job) -> Future[Verdict]: ...
    def close(self) -> None: ...


class OpenOnUse:
    """A judge whose workers (each holds torch in memory) live only while there is work for them."""

    def __init__(self, make: Callable[[], Judge]) -> None:
        self._make = make
        self._judge: Judge | None = None
        self._lock = threading.Lock()

    def prepare(self, region: Region, stats: tuple[InputStats, ...]) -> Future[Stock]:
        return self._open().prepare(region, stats)

    def submit(self, job: Job) -> Future[Verdict]:
        return self._open().submit(job)

    def close(self) -> None:
        """End the workers, also those that are busy; later work opens new ones."""
        with self._lock:
            judge, self._judge = self._judge, None
        if judge is not None:
            judge.close()

    def _open(self) -> Judge:
        with self._lock:
            if self._judge is None:
                self._judge = self._make()
            return self._judge
