"""The event log of a run: numbered, kept, then shown; in this order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from .events import Event, Log
from .exc import StoreError

Subscriber = Callable[[dict[str, Any]], None]

# A store that failed is tried again this much later; a locked one makes every try wait for seconds.
_AGAIN_S: Final = 30.0


class EventStore(Protocol):
    def append(self, run: str, data: dict[str, Any]) -> None: ...


class EventLog:
    """Thread-safe list of event JSONs with ``seq`` (from 1) and ``at_s`` (Unix seconds).

    Every event is written to the store before any subscriber sees it. When the store fails there is one
    warning and the run goes on in memory; the store is tried again from time to time and by ``save``, and
    then gets everything that it missed. Subscribers run in the emitting thread, in order, and must return
    at once (put the event in a queue); one that raises is dropped with a warning.
    """

    def __init__(
        self,
        run: str,
        store: EventStore | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.run = run
        self._store = store
        self._clock = clock
        # How many of the events the store has, and when it may be tried again after a failure.
        self._kept = 0
        self._again_at: float | None = None
        self._events: list[dict[str, Any]] = []
        self._latest: dict[str, dict[str, Any]] = {}
        self._subscribers: list[Subscriber] = []
        # Reentrant: a warning about the store is itself an event.
        self._lock = threading.RLock()

    @classmethod
    def of_past(cls, run: str, events: list[dict[str, Any]]) -> EventLog:
        """A log read back from a store; what is added to it later stays in memory until ``keep_in``."""
        log = cls(run)
        log._events = list(events)
        log._kept = len(events)
        log._latest = {event["kind"]: event for event in events}
        return log

    @property
    def events(self) -> list[dict[str, Any]]:
        """A copy of the list so far."""
        with self._lock:
            return list(self._events)

    def since(self, seq: int) -> list[dict[str, Any]]:
        """Events after number ``seq``."""
        with self._lock:
            return self._events[max(seq, 0) :]

    def latest(self, kind: str) -> dict[str, Any] | None:
        """The newest event of a kind."""
        with self._lock:
            return self._latest.get(kind)

    @property
    def is_kept(self) -> bool:
        """Whether the store has everything."""
        return self._store is not None and self._kept == len(self._events)

    def keep_in(self, store: EventStore) -> None:
        """From now on events go to ``store``, first of all those that it does not have yet."""
        with self._lock:
            self._store, self._again_at = store, None
            trouble = self._keep()
            if trouble:
                self.emit(Log("warning", trouble))

    def save(self) -> None:
        """Write what the store has missed, now. Raises StoreError when it still cannot be written."""
        with self._lock:
            if self._store is None:
                raise StoreError("This run has no store.", "Set KERNELFORGE_STORE before it starts.")
            self._write(self._store)
            self._again_at = None

    def emit(self, event: Event) -> dict[str, Any]:
        """Append an event; returns its JSON."""
        with self._lock:
            data = {**event.as_json(), "seq": len(self._events) + 1, "at_s": self._clock()}
            self._events.append(data)
            trouble = self._keep()
            self._latest[data["kind"]] = data
            self._show(data)
            if trouble:
                self.emit(Log("warning", trouble))
            return data

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call back with every later event; returns the function that ends it."""
        with self._lock:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    def _keep(self) -> str:
        """Write what is not in the store yet; a line for people when that has begun or ceased to fail."""
        if self._store is None or (self._again_at is not None and time.monotonic() < self._again_at):
            return ""
        failed_before = self._again_at is not None
        try:
            self._write(self._store)
        except StoreError as error:
            self._again_at = time.monotonic() + _AGAIN_S
            return "" if failed_before else f"This run is not being saved: {error}"
        self._again_at = None
        return ""

    def _write(self, store: EventStore) -> None:
        while self._kept < len(self._events):
            store.append(self.run, self._events[self._kept])
            self._kept += 1

    def _show(self, data: dict[str, Any]) -> None:
        for callback in tuple(self._subscribers):
            try:
                callback(data)
            except Exception as error:  # noqa: BLE001 - a listener's bug must not end the run
                self._subscribers.remove(callback)
                self.emit(Log("warning", f"a listener of the run failed and was dropped: {error!r}"))
