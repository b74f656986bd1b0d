"""A run in words and few numbers, folded from its events: the Python twin of js/core/store.ts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..history import History, RegionRecord

Json = dict[str, Any]

FINAL_STATES: Final = frozenset({"finished", "stopped", "failed"})


@dataclass(frozen=True)
class ProgressPoint:
    """After ``trial`` kernels, ``at_s`` seconds and ``usd`` dollars the step was estimated ``step`` × faster.

    ``node`` brought it; None when a best was withdrawn because it did not hold up.
    """

    trial: int
    at_s: float
    usd: float
    step: float
    node: int | None


def gain(record: RegionRecord) -> float:
    """Best stock over best kernel, 1.0 while nothing is faster."""
    return record.speedup if record.speedup is not None and record.speedup > 1 else 1.0


class Summary(History):
    """A history that also knows how good it is so far. Times in seconds since the run started."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self.judged = 0
        self.progress: list[ProgressPoint] = []
        self.logs: list[Json] = []
        super().__init__(events)

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "node_judged":
            node = self.nodes[event["node"]]
            self.judged += node.verdict is None and node.status != "stock"
        super().add(event)
        if kind == "region_state":
            self._note_progress(event)
        elif kind == "log":
            self.logs.append(dict(event))

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def title(self) -> str:
        return str(self.started.get("title", "forge"))

    @property
    def ceiling(self) -> float | None:
        return float(self.started["ceiling"]) if self.started else None

    @property
    def ranked(self) -> list[RegionRecord]:
        """Regions with the largest share of the step first."""
        return sorted(self.regions.values(), key=lambda r: -r.info["share"])

    @property
    def estimated_step(self) -> float:
        """What the region gains would make of the step: 1 / (1 − Σ share·(1 − 1/speedup)).

        Gains count against best stock, so where that is faster than eager the step does better than this.
        """
        saved = sum(r.info["share"] * (1 - 1 / gain(r)) for r in self.regions.values())
        return float(1 / max(1e-9, 1 - saved))

    @property
    def best_nodes(self) -> set[int]:
        """The best node of every region with all its ancestors."""
        found: set[int] = set()
        for region in self.regions.values():
            at = region.best
            while at is not None and at not in found and at in self.nodes:
                found.add(at)
                at = self.nodes[at].parent
        return found

    def how_good(self) -> str:
        """``1.34× (1.31–1.36)``, ``≈ 1.2×`` from regions only, or ``no gain yet``: never a hopeful number."""
        if self.step:
            s = self.step
            numbers = f"{s['speedup']:.2f}× ({s['low']:.2f}–{s['high']:.2f})"
            return numbers if s["installed"] else f"no gain ({numbers} measured)"
        if self.estimated_step > 1.0005:
            return f"≈ {self.estimated_step:.2f}× from its regions"
        return "no gain" if self.is_final else "no gain yet"

    def text(self) -> str:
        """One paragraph for people without pictures."""
        if not self.started:
            return f"kernelforge run: {self.state}. {self.message}".strip()
        s = self.started
        parts = [f"kernelforge run {s['run']}: {s['title']} on {s['target']}, {self.state}."]
        parts.append(f"Step: {self.how_good()}, ceiling {s['ceiling']:.2f}×.")
        if self.step:
            equal = "equal" if self.step["equal"] else "not equal"
            parts.append(
                f"{self.step['stock_ms']:.1f} ms → {self.step['forged_ms']:.1f} ms "
                f"against {self.step['stock']}, outputs {equal}."
            )
        won = sum(gain(r) > 1 for r in self.regions.values())
        parts.append(f"{self.judged} kernels judged, {won} of {len(self.regions)} regions faster.")
        if self.message:
            parts.append(self.message)
        return " ".join(parts)

    def as_json(self) -> Json:
        """The few numbers a trait carries."""
        return {
            "state": self.state,
            "ceiling": self.ceiling,
            "step": self.step.get("speedup"),
            "estimate": self.estimated_step,
            "judged": self.judged,
            "nodes": len(self.nodes),
            "spent_usd": self.meter.get("spent_usd", 0.0),
        }

    def _note_progress(self, event: Mapping[str, Any]) -> None:
        step = self.estimated_step
        before = self.progress[-1].step if self.progress else 1.0
        if abs(before - step) >= 1e-9:
            at_s = event.get("at_s", 0.0) - self.started.get("at_s", 0.0)
            usd = self.meter.get("spent_usd", 0.0)
            self.progress.append(ProgressPoint(self.judged, at_s, usd, step, event["best"]))
