"""The event log: numbered, written before it is shown, safe from every thread."""

from __future__ import annotations

import threading
from typing import Any

from kernelforge_lab.events import Log
from kernelforge_lab.log import EventLog


class FakeStore:
    def __init__(self) -> None:
        self.seen: list[int] = []

    def append(self, run: str, data: dict[str, Any]) -> None:
        self.seen.append(data["seq"])


def test_events_are_written_before_they_are_shown() -> None:
    store = FakeStore()
    log = EventLog("r", store)
    shown: list[bool] = []
    log.subscribe(lambda data: shown.append(data["seq"] in store.seen and data in log.events))
    for _ in range(3):
        log.emit(Log("info", "x"))
    assert shown == [True, True, True]


def test_numbers_have_no_gap_whoever_writes() -> None:
    store = FakeStore()
    log = EventLog("r", store)
    seen: list[int] = []
    log.subscribe(lambda data: seen.append(data["seq"]))
    threads = [
        threading.Thread(target=lambda: [log.emit(Log("info", "x")) for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == store.seen == list(range(1, 201))


def test_since_gives_what_came_later() -> None:
    log = EventLog("r")
    for text in "abc":
        log.emit(Log("info", text))
    assert [event["message"] for event in log.since(1)] == ["b", "c"]
    assert log.since(3) == [] and len(log.since(0)) == 3


def test_the_latest_of_a_kind_is_at_hand() -> None:
    log = EventLog("r")
    assert log.latest("log") is None
    log.emit(Log("info", "a"))
    log.emit(Log("info", "b"))
    for known in (log, EventLog.of_past("r", log.events)):
        assert (known.latest("log") or {})["message"] == "b"


def test_the_list_handed_out_is_a_copy() -> None:
    log = EventLog("r")
    log.emit(Log("info", "a"))
    log.events.clear()
    assert len(log.events) == 1


def test_a_failing_listener_is_dropped_and_the_others_go_on() -> None:
    log = EventLog("r")
    heard: list[str] = []

    def broken(data: dict[str, Any]) -> None:
        raise ValueError("no")

    log.subscribe(broken)
    log.subscribe(lambda data: heard.append(data.get("message", "")))
    log.emit(Log("info", "one"))
    log.emit(Log("info", "two"))
    assert [message for message in heard if "listener" not in message] == ["one", "two"]
    assert sum("listener" in event["message"] for event in log.events) == 1


def test_unsubscribing_ends_it() -> None:
    log = EventLog("r")
    heard: list[Any] = []
    end = log.subscribe(heard.append)
    log.emit(Log("info", "one"))
    end()
    end()
    log.emit(Log("info", "two"))
    assert len(heard) == 1
