"""Which runs may go. Nothing is ever deleted unasked, and proven kernels outlive their runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from .database import StoredRun

# What models cost today is counted from the store, so the last day's runs stay unless named.
_KEPT_S: Final = 24 * 3600.0
_DAY_S: Final = 24 * 3600.0


def prunable(
    runs: Sequence[StoredRun],
    *,
    keep: int | None = None,
    older_than_days: float | None = None,
    now: float | None = None,
) -> list[StoredRun]:
    """Runs beyond the newest ``keep`` and (where both are given: also) older than so many days.

    Runs at work and those of the last day stay in any case.
    """
    at = time.time() if now is None else now
    newest = sorted(runs, key=lambda run: -run.started_at)
    beyond = newest[keep:] if keep is not None else newest
    oldest = at - max(older_than_days or 0.0, 0.0) * _DAY_S
    return [run for run in beyond if run.updated_at < min(oldest, at - _KEPT_S) and not run.is_live]
