"""Stored runs as the lab's panel shows them: one line each, folded once and then kept up to date."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final

from ..exc import ProblemError
from ..notebook import wire
from ..notebook.reports import render
from ..notebook.summary import Summary
from ..store import Store, StoredRun

Json = dict[str, Any]

# A panel shows the newest; a search for older ones is the command line's.
LISTED: Final = 40
# Runs that change are few; the fold of each is kept so that a poll reads only what is new.
_FOLDED: Final = 6


class StoredRuns:
    """Every method may be called from any thread; raises StoreError and ProblemError."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[int, Json]] = {}
        self._folds: OrderedDict[str, tuple[int, Summary]] = OrderedDict()

    def rows(self) -> list[Json]:
        """The newest runs with how good they are and what they cost."""
        with self._lock:
            return [self._row(run) for run in self._open().runs()[:LISTED]]

    def events(self, run: str, after: int = 0) -> Json:
        """A batch that takes a view from ``after`` events to all of them."""
        events = self._open().events(run, after)
        if not events and not after:
            raise ProblemError(f"There is no run {run!r} in the store.")
        return wire.batch(events, after)

    def source(self, run: str, node: int) -> str:
        """The source of a node that was too long for a batch."""
        for event in self._open().events(run):
            if event["kind"] == "node_added" and event["node"] == node:
                return str(event["source"])
        raise ProblemError(f"Run {run!r} has no node {node}.")

    def calls(self, run: str, node: int) -> list[Json]:
        """The model calls that led to a node, whole."""
        events = self._open().events(run)
        return [e for e in events if e["kind"] == "model_called" and e["node"] == node]

    def delete(self, run: str) -> bool:
        with self._lock:
            self._rows.pop(run, None)
            self._folds.pop(run, None)
            return self._open().delete(run)

    def report(self, run: str, suffix: str) -> str:
        events = self._open().events(run)
        if not events:
            raise ProblemError(f"There is no run {run!r} in the store.")
        return render(events, suffix)

    def _open(self) -> Store:
        if self._store is None:
            self._store = Store()
        return self._store

    def _row(self, run: StoredRun) -> Json:
        known = self._rows.get(run.id)
        if known and known[0] == run.events:
            return known[1]
        at, summary = self._folds.pop(run.id, (0, Summary()))
        for event in self._open().events(run.id, at):
            summary.add(event)
        if not summary.is_final:
            self._folds[run.id] = (run.events, summary)
            while len(self._folds) > _FOLDED:
                self._folds.popitem(last=False)
        row = {
            "id": run.id,
            "title": run.title or "forge",
            "target": run.target,
            "state": run.state,
            "started_at": run.started_at,
            "updated_at": run.updated_at,
            "best": summary.how_good(),
            "ceiling": summary.ceiling,
            "judged": summary.judged,
            "spent_usd": summary.meter.get("spent_usd", 0.0),
            "message": summary.message,
        }
        self._rows[run.id] = (run.events, row)
        return row
