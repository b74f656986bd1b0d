"""Device time of a few calls on a GPU, with the host out of the picture.

Everything is queued behind a delay: when the device begins, it finds all its work waiting. Without that,
small operators measure Python and the launches instead of the device (5 µs against 2).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import torch

_SPARE: Final = 1.5  # of the host's time, so that the delay surely outlasts the queueing
_DELAY_MIN_S: Final = 40e-6
_DELAY_MAX_S: Final = 0.02
_UNKNOWN_HOST_S: Final = 300e-6
_EMPTY_TRIES: Final = 15


class CudaClock:
    """Of the current device and stream. ``empty_s``, what two events alone take, is subtracted."""

    def __init__(self, cycles_per_s: float | None = None) -> None:
        if cycles_per_s is None:
            from ..targets.cuda_device import clock_hz

            cycles_per_s = clock_hz(torch.cuda.current_device())
        self._cycles_per_s = cycles_per_s
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.empty_s = 0.0
        self.empty_s = statistics.median([self.time(lambda: None)[1] for _ in range(_EMPTY_TRIES)])

    def time(self, call: Callable[[], Any], host_s: float = 0.0) -> tuple[Any, float]:
        """(what ``call`` returned, seconds the device was at it). ``host_s``: what queueing it takes."""
        begin, end = self._events
        delay_s = min(_DELAY_MAX_S, _DELAY_MIN_S + _SPARE * (host_s or _UNKNOWN_HOST_S))
        torch.cuda.synchronize()
        torch.cuda._sleep(int(delay_s * self._cycles_per_s))
        begin.record()
        out = call()
        end.record()
        end.synchronize()
        return out, max(begin.elapsed_time(end) * 1e-3 - self.empty_s, 0.0)

    def each(self, call: Callable[[], Any], calls: int = 1, tries: int = 5) -> float:
        """Shortest seconds per call over ``tries`` blocks of ``calls``."""

        def block() -> None:
            for _ in range(calls):
                call()

        block()
        torch.cuda.synchronize()
        start = time.perf_counter()
        block()
        host_s = time.perf_counter() - start
        return min(self.time(block, host_s)[1] for _ in range(tries)) / calls
