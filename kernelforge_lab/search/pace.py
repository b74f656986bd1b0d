"""Progress, told often enough to feel alive and seldom enough to cost nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ..events import Event, Meter
from .budget import Ledger

# At most five a second, and one a second when only the clock has moved.
_BUSY_S: Final = 0.2
_IDLE_S: Final = 1.0


class Pace:
    """Emits Meter events about a ledger."""

    def __init__(self, emit: Callable[[Event], object], ledger: Ledger) -> None:
        self._emit, self._ledger = emit, ledger
        self._at = -_IDLE_S
        self._was: tuple[object, ...] = ()

    def tell(self, doing: str, *, force: bool = False) -> None:
        """Emit a Meter if something changed and the last is old enough (or ``force``)."""
        ledger = self._ledger
        now, state = time.monotonic(), (ledger.trials, ledger.usd, doing)
        if not force and now - self._at < (_IDLE_S if state == self._was else _BUSY_S):
            return
        self._at, self._was = now, state
        eta = ledger.eta_s()
        self._emit(
            Meter(
                ledger.trials,
                ledger.budget.trials,
                round(ledger.elapsed_s, 1),
                ledger.budget.seconds,
                None if eta is None else round(eta, 1),
                round(ledger.usd, 4),
                ledger.budget.usd,
                doing,
            )
        )
