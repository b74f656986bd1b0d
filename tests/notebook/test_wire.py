"""Packing: smaller, never different in meaning."""

from __future__ import annotations

import json

from kernelforge_lab.notebook import wire
from kernelforge_lab.notebook.summary import Summary

from .fakes import fixture_events


def sources(events: list[dict[str, object]]) -> dict[object, object]:
    """Source of each node after following ``source_node``."""
    added = {e["node"]: e for e in events if e["kind"] == "node_added"}
    return {
        n: added[e["source_node"]]["source"] if "source_node" in e else e["source"] for n, e in added.items()
    }


def test_packing_keeps_every_fact_and_every_source() -> None:
    events = fixture_events()
    packed = wire.pack(events)
    assert Summary(packed).as_json() == Summary(events).as_json()
    assert sources(packed) == sources(events)
    assert len(json.dumps(packed)) < len(json.dumps(events))


def test_the_events_given_are_not_changed() -> None:
    events = fixture_events()
    before = json.dumps(events)
    wire.pack(events, each_chars=10, total_chars=10)
    assert json.dumps(events) == before


def test_meters_that_nothing_was_spent_since_are_dropped_but_not_the_last() -> None:
    meter = {"kind": "meter", "spent_usd": 0.0}
    events = [{**meter, "seq": i, "trials": i} for i in range(1, 10)]
    assert [e["seq"] for e in wire.pack(events)] == [1, 9]
    paid = [{**meter, "seq": i, "spent_usd": 0.1 * i} for i in range(1, 4)]
    assert wire.pack(paid) == paid


def test_a_source_too_long_is_left_out_and_said_so() -> None:
    node = {"kind": "node_added", "node": 1, "seq": 1, "source": "x" * 50}
    (packed,) = wire.pack([node], each_chars=49)
    assert packed["source"] == "" and packed["source_chars"] == 50


def test_little_room_goes_to_the_preferred_sources() -> None:
    nodes = [{"kind": "node_added", "node": i, "seq": i, "source": str(i) * 40} for i in range(1, 5)]
    packed = wire.pack(nodes, total_chars=50, prefer={3})
    assert [bool(e["source"]) for e in packed] == [False, False, True, False]
