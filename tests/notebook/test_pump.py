"""The pump: every event arrives once and in order, few messages, gaps are filled, nothing is lost at the end."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import Any

from kernelforge_lab import events as ev
from kernelforge_lab.log import EventLog
from kernelforge_lab.notebook.pump import Pump
from kernelforge_lab.notebook.summary import Summary

from .fakes import script


class FakeSink:
    """Keeps what a widget would have sent, and checks that one thread does it all."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.contexts: list[str] = []
        self.finished = threading.Event()
        self.summary = Summary()

    def send_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.threads.add(threading.current_thread().name)
        self.contexts.append(WHERE.get())

    def show_summary(self, summary: Summary) -> None:
        self.threads.add(threading.current_thread().name)

    def finish(self, summary: Summary) -> None:
        self.summary = summary
        self.finished.set()

    @property
    def seqs(self) -> list[int]:
        return [e["seq"] for m in self.messages for e in m.get("events", ())]


WHERE = contextvars.ContextVar("where", default="cell")


def logs(log: EventLog, count: int) -> None:
    for i in range(count):
        log.emit(ev.Log("info", str(i)))


def until(condition: Any, timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def test_every_event_arrives_once_in_order_from_one_thread() -> None:
    log, sink = EventLog("r"), FakeSink()
    Pump(log, sink, interval_s=0.01).start()
    writers = [threading.Thread(target=logs, args=(log, 200)) for _ in range(3)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    until(lambda: len(sink.seqs) >= 600)
    assert sink.seqs == list(range(1, 601))
    assert sink.threads == {"kernelforge-pump"}


def test_a_burst_becomes_few_messages() -> None:
    log, sink = EventLog("r"), FakeSink()
    Pump(log, sink, interval_s=0.1).start()
    logs(log, 1000)
    until(lambda: sink.seqs[-1:] == [1000])
    assert len(sink.messages) <= 4


def test_batches_join_without_gaps() -> None:
    log, sink = EventLog("r"), FakeSink()
    Pump(log, sink, interval_s=0.01).start()
    for _ in range(5):
        logs(log, 7)
        time.sleep(0.02)
    until(lambda: sink.seqs[-1:] == [35])
    assert [m["from"] for m in sink.messages[1:]] == [m["to"] for m in sink.messages[:-1]]


def test_a_pump_that_starts_late_knows_what_came_before() -> None:
    log, sink = EventLog("r"), FakeSink()
    events = list(script(trials=20))
    for event in events[:60]:
        log.emit(event)
    Pump(log, sink, interval_s=0.01).start(60)
    for event in events[60:]:
        log.emit(event)
    assert sink.finished.wait(5)
    assert sink.seqs[0] == 61 and sink.summary.judged == 20


def test_a_view_that_says_hello_gets_what_it_lacks() -> None:
    log, sink = EventLog("r"), FakeSink()
    pump = Pump(log, sink, interval_s=0.01)
    logs(log, 10)
    pump.start()
    until(lambda: sink.seqs[-1:] == [10])
    sink.messages.clear()
    pump.hello(4)
    until(lambda: bool(sink.messages))
    assert (sink.messages[0]["from"], sink.messages[0]["to"]) == (4, 10)
    assert sink.seqs == [5, 6, 7, 8, 9, 10]


def test_a_view_ahead_of_the_log_is_told_to_start_over() -> None:
    log, sink = EventLog("r"), FakeSink()
    pump = Pump(log, sink, interval_s=0.01)
    logs(log, 3)
    pump.start()
    until(lambda: sink.seqs[-1:] == [3])
    sink.messages.clear()
    pump.hello(500)
    until(lambda: bool(sink.messages))
    assert sink.messages[0]["kind"] == "reset" and sink.seqs == [1, 2, 3]


def test_sending_follows_the_context_of_the_last_hello() -> None:
    log, sink = EventLog("r"), FakeSink()
    pump = Pump(log, sink, interval_s=0.01)
    pump.start()
    context = contextvars.copy_context()
    context.run(WHERE.set, "subshell")
    pump.hello(0, context)
    logs(log, 1)
    until(lambda: "subshell" in sink.contexts)


def test_the_end_is_announced_after_everything_was_sent_and_later_events_still_arrive() -> None:
    log, sink = EventLog("r"), FakeSink()
    pump = Pump(log, sink, interval_s=0.01)
    pump.start()
    logs(log, 5)
    log.emit(ev.RunState("finished"))
    assert sink.finished.wait(5)
    assert sink.seqs == [1, 2, 3, 4, 5, 6]
    log.emit(ev.GuardCounts(3, {}))
    until(lambda: sink.seqs[-1:] == [7])


def test_a_closed_pump_sends_nothing_more() -> None:
    log, sink = EventLog("r"), FakeSink()
    pump = Pump(log, sink, interval_s=0.01)
    pump.start()
    pump.close()
    pump.join(5)
    before = len(sink.messages)
    logs(log, 5)
    time.sleep(0.05)
    assert len(sink.messages) == before
