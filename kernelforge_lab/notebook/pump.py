"""The one thread that talks to a widget: batches of events, at most ten a second.

traitlets and comms are not safe to use from several threads, and jupyter_server silently drops widget
messages above 1000/s; so agent threads only append to the log, and this thread alone sends.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from . import wire
from .summary import Summary

Json = dict[str, Any]

INTERVAL_S: Final = 0.1
GATHER_S: Final = 0.015
SUMMARY_INTERVAL_TICKS: Final = 20
# After the last event the thread ends; a later event (guard counts) starts another.
LINGER_S: Final = 2.0


class Log(Protocol):
    """What is read of a run: ``kernelforge_lab.log.EventLog``."""

    def since(self, seq: int) -> list[Json]: ...

    def subscribe(self, callback: Callable[[Json], None]) -> Callable[[], None]: ...


class Sink(Protocol):
    """What the pump drives; every method is called from the pump thread only."""

    def send_message(self, message: Json) -> None: ...

    def show_summary(self, summary: Summary) -> None: ...

    def finish(self, summary: Summary) -> None:
        """Called once all events of an ended run were sent."""


class Pump:
    """Carries a log to a sink. ``hello`` may be called from any thread and returns at once."""

    def __init__(self, log: Log, sink: Sink, *, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._sink = sink
        self._interval_s = interval_s
        self._summary = Summary()
        self._outbox: deque[Json] = deque()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sent = 0
        self._resend_from: int | None = None
        self._context: contextvars.Context | None = None
        self._finished_at = -1
        self._closed = False
        self._unsubscribe = log.subscribe(lambda _event: self._notify())

    def start(self, have: int = 0) -> None:
        """Begin after ``have`` events, which the view got as a snapshot."""
        for event in self._log.since(0)[:have]:
            self._summary.add(event)
        self._sent = have
        self._notify()

    def hello(self, have: int, context: contextvars.Context | None = None) -> None:
        """A view holds ``have`` events: send it the rest.

        ``context`` is that of a message handled on a kernel subshell. Sending inside it makes ipykernel
        7.4 route the view's answers (Stop) to the subshell instead of a busy main thread.
        """
        with self._lock:
            if context is not None:
                self._context = context
            # Of several views, the one that lacks most decides; the others skip what they have.
            self._resend_from = have if self._resend_from is None else min(have, self._resend_from)
        self._notify()

    def post(self, message: Json) -> None:
        """Send something that is not an event (an answer), from the pump thread like all else."""
        self._outbox.append(message)
        self._notify()

    def close(self) -> None:
        """Stop sending (the run itself goes on)."""
        self._closed = True
        self._unsubscribe()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        """Wait until everything has been sent or the time is over."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)

    def _notify(self) -> None:
        self._wake.set()
        with self._lock:
            if self._closed or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._loop, name="kernelforge-pump", daemon=True)
            self._thread.start()

    def _loop(self) -> None:
        tick = 0
        while not self._closed:
            if not self._wake.wait(LINGER_S):
                with self._lock:
                    # Decided under the lock that _notify takes, so no event falls between.
                    if not self._wake.is_set():
                        self._thread = None
                        return
            # What belongs together (a node, its verdict, the meter) comes within moments: one message.
            threading.Event().wait(min(GATHER_S, self._interval_s))
            self._wake.clear()
            self._tick(tick)
            tick += 1
            threading.Event().wait(max(0.0, self._interval_s - GATHER_S))

    def _tick(self, tick: int) -> None:
        with self._lock:
            wanted, self._resend_from = self._resend_from, None
        # A view that claims more than there is shows another run (of a kernel before this one).
        reset = wanted is not None and wanted > self._sent
        start = 0 if reset else self._sent if wanted is None else wanted
        events = self._log.since(start)
        fresh = events[self._sent - start :]
        for event in fresh:
            self._summary.add(event)
        self._sent = start + len(events)
        if events or reset:
            self._in_context(lambda: self._sink.send_message(wire.batch(events, start, reset=reset)))
        while self._outbox:
            self._in_context(partial(self._sink.send_message, self._outbox.popleft()))
        final = self._summary.is_final
        if tick % SUMMARY_INTERVAL_TICKS == 0 or any(e["kind"] == "run_state" for e in fresh):
            self._in_context(lambda: self._sink.show_summary(self._summary))
        if final and fresh and self._sent > self._finished_at:
            self._finished_at = self._sent
            self._in_context(lambda: self._sink.finish(self._summary))

    def _in_context(self, act: Callable[[], None]) -> None:
        context = self._context
        if context is None:
            act()
        else:
            context.run(act)
