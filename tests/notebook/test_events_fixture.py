"""One JSON fixture that both sides of the wire are held to: events.py here, js/core/protocol.ts there.

``python -m tests.notebook.test_events_fixture`` writes it anew after a deliberate change.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from kernelforge_lab import events as ev
from kernelforge_lab.notebook.summary import Summary, gain

from .fakes import fixture_events

FIXTURE = pathlib.Path(__file__).with_name("events.json")


def expected(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What any reader must make of the events."""
    summary = Summary(events)
    return {
        "state": summary.state,
        "judged": summary.judged,
        "nodes": len(summary.nodes),
        "estimate": round(summary.estimated_step, 9),
        "regions": {
            r.hash: [r.state, r.best if gain(r) > 1 else None, round(gain(r), 9)] for r in summary.ranked
        },
        "progress": [[p.trial, round(p.at_s, 6), p.usd, round(p.step, 9), p.node] for p in summary.progress],
    }


def write() -> None:
    events = fixture_events()
    data = {"events": events, "expected": expected(events)}
    FIXTURE.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", "utf-8")


def test_the_fixture_is_what_the_event_classes_write() -> None:
    fixture = json.loads(FIXTURE.read_text("utf-8"))
    assert fixture["events"] == json.loads(json.dumps(fixture_events()))
    assert fixture["expected"] == json.loads(json.dumps(expected(fixture["events"])))


def test_every_event_of_the_fixture_reads_back() -> None:
    events = json.loads(FIXTURE.read_text("utf-8"))["events"]
    for event in events:
        assert ev.from_json(event).as_json().items() <= event.items()
    assert {e["kind"] for e in events} >= set(ev.EVENTS) - {"guard_counts", "log"}


if __name__ == "__main__":
    write()
