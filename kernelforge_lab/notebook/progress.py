"""Plain progress lines for where nobody watches a widget: nbconvert, papermill, a terminal."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..history import NodeRecord
from .summary import FINAL_STATES, Summary, gain

Json = Mapping[str, Any]

# Often enough to see that it lives, rare enough for a log file.
METER_EVERY_S: Final = 15.0
_LOOK_EVERY_S: Final = 5.0


class Narrator:
    """Turns events into lines; a line only when something happened that a person would tell another."""

    def __init__(self) -> None:
        self.summary = Summary()
        self._told_at_s = 0.0

    def lines(self, event: Json) -> Iterator[str]:
        """Lines to print for one event, often none."""
        before = {h: gain(r) for h, r in self.summary.regions.items()}
        self.summary.add(event)
        match event["kind"]:
            case "run_started":
                yield from self._started(event)
            case "region_state":
                yield from self._region(event, before.get(event["region"], 1.0))
            case "meter":
                yield from self._meter(event)
            case "step_measured":
                yield from self._step(event)
            case "run_state" if event["message"]:
                yield f"{event['state']}: {event['message']}"
            case "log" if event["level"] != "info":
                yield f"{event['level']}: {event['message']}"

    def _started(self, event: Json) -> Iterator[str]:
        count = sum(r["eligible"] for r in event["regions"])
        yield (
            f"{event['title']} on {event['target']} ({event['device']}): "
            f"one step takes {event['step_ms']:.1f} ms, {count} regions to search, "
            f"ceiling {event['ceiling']:.2f}×"
        )
        if event["advice"]:
            yield event["advice"]
        for reason in event["uncaptured"]:
            yield f"about the capture: {reason}"

    def _region(self, event: Json, before: float) -> Iterator[str]:
        record = self.summary.regions[event["region"]]
        share = f"{100 * record.info['share']:.0f} % of the step"
        if event["state"] == "done":
            found = f"{gain(record):.2f}× proven" if gain(record) > 1 else "stock stays"
            yield f"  {record.info['title']} ×{record.info['count']} ({share}): {found}; {event['reason']}"
        elif gain(record) > before * 1.02:
            yield f"  {record.info['title']} ×{record.info['count']} ({share}): {gain(record):.2f}× so far"

    def _meter(self, event: Json) -> Iterator[str]:
        if event["elapsed_s"] - self._told_at_s < METER_EVERY_S:
            return
        self._told_at_s = event["elapsed_s"]
        eta = f", about {_clock(event['eta_s'])} left" if event["eta_s"] is not None else ""
        money = f", ${event['spent_usd']:.2f} spent" if event["spent_usd"] else ""
        trials = f"{event['trials']}/{event['trials_max']}"
        so_far = f"{trials} kernels judged{eta}{money}; {self.summary.how_good()}"
        yield f"  {_clock(event['elapsed_s'])}: {so_far}"

    def _step(self, event: Json) -> Iterator[str]:
        equal = "outputs equal" if event["equal"] else "outputs differ"
        yield (
            f"step: {event['stock_ms']:.1f} ms ({event['stock']}) → {event['forged_ms']:.1f} ms, "
            f"{event['speedup']:.2f}× ({event['low']:.2f}–{event['high']:.2f}), {equal}"
            + ("" if event["installed"] else "; the model stays as it is")
        )


def follow(run: Any, write: Callable[[str], None] = print) -> None:
    """Print the run's progress until it ends. KeyboardInterrupt propagates; the run goes on."""
    events: queue.SimpleQueue[Json] = queue.SimpleQueue()
    unsubscribe = run.log.subscribe(events.put)
    narrator = Narrator()
    try:
        seen = 0
        for event in run.log.events:
            seen = event["seq"]
            _tell(narrator, event, write)
        while not narrator.summary.is_final:
            try:
                event = events.get(timeout=1.0)
            except queue.Empty:
                continue
            if event["seq"] > seen:
                seen = event["seq"]
                _tell(narrator, event, write)
    finally:
        unsubscribe()


def _tell(narrator: Narrator, event: Json, write: Callable[[str], None]) -> None:
    for line in narrator.lines(event):
        write(line)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def verdict_of(run: Any, node: int) -> NodeRecord | None:
    """Wait for a node's verdict; None when the run ended without one or the person interrupts."""
    news = threading.Event()
    done: dict[str, bool] = {}

    def listen(event: Json) -> None:
        if event["kind"] == "node_judged" and event["node"] == node:
            done["judged"] = True
        elif event["kind"] == "run_state" and event["state"] in FINAL_STATES:
            done["ended"] = True
        else:
            return
        news.set()

    unsubscribe = run.log.subscribe(listen)
    try:
        while not done:
            record: NodeRecord | None = run.history.nodes.get(node)
            if (record and record.verdict) or news.wait(_LOOK_EVERY_S):
                break
    except KeyboardInterrupt:
        return None
    finally:
        unsubscribe()
    record = run.history.nodes.get(node)
    return record if record and record.verdict else None
