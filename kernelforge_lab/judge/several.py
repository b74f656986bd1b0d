"""One judge per GPU of this machine: a kernel is proven and timed on one of them, alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

from ..kernels.region import Region
from ..kernels.stats import InputStats
from .job import Job, Stock
from .pool import JudgePool
from .verdict import Verdict


class SeveralJudges:
    """Gives work to the judge that has least to do, of several that began equally idle to the first."""

    def __init__(self, judges: Sequence[Any]) -> None:
        self._judges = list(judges)
        self._busy = [0] * len(self._judges)
        self._lock = Lock()

    def prepare(self, region: Region, stats: tuple[InputStats, ...] = ()) -> Future[Stock]:
        return self._idlest(lambda judge: judge.prepare(region, stats))

    def submit(self, job: Job) -> Future[Verdict]:
        return self._idlest(lambda judge: judge.submit(job))

    def close(self) -> None:
        for judge in self._judges:
            judge.close()

    def _idlest(self, ask: Callable[[Any], Future[Any]]) -> Future[Any]:
        with self._lock:
            chosen = min(range(len(self._judges)), key=self._busy.__getitem__)
            self._busy[chosen] += 1
        answer = ask(self._judges[chosen])

        def done(_: Future[Any]) -> None:
            with self._lock:
                self._busy[chosen] -= 1

        answer.add_done_callback(done)
        return answer


def visible_gpus() -> list[str]:
    """The GPUs that are like the current one, which comes first; named as for CUDA_VISIBLE_DEVICES."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        return []
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    names = given[:count] if len(given) >= count else [str(number) for number in range(count)]
    current = torch.cuda.current_device()
    model = torch.cuda.get_device_name(current)
    order = sorted(range(count), key=lambda number: number != current)
    return [names[number] for number in order if torch.cuda.get_device_name(number) == model]


def local_judge(target: str) -> Any:
    """A pool on this machine, one per GPU where there are several."""
    gpus = visible_gpus() if target == "cuda" else []
    if len(gpus) < 2:
        return JudgePool(target)
    return SeveralJudges([JudgePool(target, environment={"CUDA_VISIBLE_DEVICES": gpu}) for gpu in gpus])
