"""A run as people see it, folded from its events: the Python twin of js/core/store.ts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

FINAL_STATES: Final = frozenset({"finished", "stopped", "failed"})


@dataclass
class NodeView:
    """A kernel of the tree with its verdict (None while it is being judged)."""

    id: int
    region: str
    parent: int | None
    proposer: str
    strategy: str
    idea: str
    source: str
    params: dict[str, int]
    at_s: float
    verdict: Json | None = None

    @property
    def outcome(self) -> str:
        """``pending``, ``faster``, ``slower`` or ``failed``."""
        if self.verdict is None:
            return "pending"
        status: str = self.verdict["status"]
        return status if status in ("faster", "slower") else "failed"

    @property
    def speedup(self) -> float | None:
        timing = (self.verdict or {}).get("timing")
        return timing["speedup"] if timing else None


@dataclass
class RegionView:
    """A region with its best kernel; ``speedup`` is None while nothing is proven faster."""

    info: Json
    state: str = "waiting"
    reason: str = ""
    best: int | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    nodes: list[NodeView] = field(default_factory=list)

    @property
    def hash(self) -> str:
        return str(self.info["hash"])


@dataclass(frozen=True)
class ProgressPoint:
    """After ``trial`` kernels, ``at_s`` seconds and ``usd`` dollars the step was estimated ``step`` × faster."""

    trial: int
    at_s: float
    usd: float
    step: float
    node: int


class Summary:
    """Fold events with ``add``; read the attributes. Times in seconds since the run started."""

    def __init__(self, events: Iterable[Json] = ()) -> None:
        self.started: Json | None = None
        self.state = "starting"
        self.message = ""
        self.meter: Json | None = None
        self.step: Json | None = None
        self.guard: Json | None = None
        self.logs: list[Json] = []
        self.regions: dict[str, RegionView] = {}
        self.nodes: dict[int, NodeView] = {}
        self.judged = 0
        self.progress: list[ProgressPoint] = []
        self._began_s = 0.0
        for event in events:
            self.add(event)

    def add(self, event: Json) -> None:
        """Take in one event; unknown kinds (a newer run) are ignored."""
        handler = getattr(self, f"_on_{event['kind']}", None)
        if handler is not None:
            handler(event)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def title(self) -> str:
        return str(self.started["title"]) if self.started else "forge"

    @property
    def ceiling(self) -> float | None:
        return float(self.started["ceiling"]) if self.started else None

    @property
    def ranked(self) -> list[RegionView]:
        """Regions with the largest share of the step first."""
        return sorted(self.regions.values(), key=lambda r: -r.info["share"])

    @property
    def estimated_step(self) -> float:
        """What the proven region gains would make of the step: 1 / (1 − Σ share·(1 − 1/speedup)).

        Gains count against best stock, so where that is faster than eager the step does better than this.
        """
        gains = [(r.info["share"], r.speedup) for r in self.regions.values() if r.speedup]
        saved = sum(share * (1 - 1 / speedup) for share, speedup in gains if speedup > 1)
        return 1 / max(1e-9, 1 - saved)

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
        if self.step is not None:
            s = self.step
            numbers = f"{s['speedup']:.2f}× ({s['low']:.2f}–{s['high']:.2f})"
            return numbers if s["installed"] else f"no gain ({numbers} measured)"
        if self.estimated_step > 1.0005:
            return f"≈ {self.estimated_step:.2f}× from proven regions"
        return "no gain" if self.is_final else "no gain yet"

    def text(self) -> str:
        """One paragraph for people without pictures."""
        if self.started is None:
            return f"kernelforge run: {self.state}. {self.message}".strip()
        s = self.started
        parts = [f"kernelforge run {s['run']}: {s['title']} on {s['target']}, {self.state}."]
        parts.append(f"Step: {self.how_good()}, ceiling {s['ceiling']:.2f}×.")
        if self.step is not None:
            equal = "equal" if self.step["equal"] else "not equal"
            parts.append(
                f"{self.step['stock_ms']:.1f} ms → {self.step['forged_ms']:.1f} ms "
                f"against {self.step['stock']}, outputs {equal}."
            )
        won = sum(1 for r in self.regions.values() if r.speedup)
        parts.append(f"{self.judged} kernels judged, {won} of {len(self.regions)} regions faster.")
        if self.message:
            parts.append(self.message)
        return " ".join(parts)

    def as_json(self) -> Json:
        """The few numbers a trait carries."""
        return {
            "state": self.state,
            "ceiling": self.ceiling,
            "step": self.step["speedup"] if self.step else None,
            "estimate": self.estimated_step,
            "judged": self.judged,
            "nodes": len(self.nodes),
            "spent_usd": self.meter["spent_usd"] if self.meter else 0.0,
        }

    # ---- events ----
    def _on_run_started(self, event: Json) -> None:
        self.started = event
        self._began_s = event.get("at_s", 0.0)
        for info in event["regions"]:
            eligible = info["eligible"]
            self.regions[info["hash"]] = RegionView(
                info, "waiting" if eligible else "ineligible", info.get("reason", "")
            )

    def _on_region_state(self, event: Json) -> None:
        region = self.regions.get(event["region"])
        if region is None:
            return
        region.state, region.reason = event["state"], event["reason"]
        if event["best"] is not None and event["speedup"] is not None:
            region.best, region.speedup = event["best"], event["speedup"]
            region.low, region.high = event["low"], event["high"]
            self._note_progress(event["best"], event)

    def _on_node_added(self, event: Json) -> None:
        if event["node"] in self.nodes:
            return
        names = ("region", "parent", "proposer", "strategy", "idea", "source", "params")
        node = NodeView(event["node"], *(event[name] for name in names), at_s=self._seconds(event))
        self.nodes[node.id] = node
        if node.region in self.regions:
            self.regions[node.region].nodes.append(node)

    def _on_node_judged(self, event: Json) -> None:
        node = self.nodes.get(event["node"])
        if node is None:
            return
        self.judged += node.verdict is None
        node.verdict = event["verdict"]
        region = self.regions.get(node.region)
        if region is None:
            return
        if node.outcome == "faster" and node.speedup is not None:
            if region.best == node.id or node.speedup > (region.speedup or 1.0):
                self._crown(region, node)
                self._note_progress(node.id, event)
        elif region.best == node.id:
            # A finalist that did not hold up in a fresh process.
            region.best = region.speedup = region.low = region.high = None
            rest = [n for n in region.nodes if n.outcome == "faster" and n.speedup and n.speedup > 1]
            if rest:
                self._crown(region, max(rest, key=lambda n: n.speedup or 0.0))

    def _on_meter(self, event: Json) -> None:
        self.meter = event

    def _on_run_state(self, event: Json) -> None:
        self.state, self.message = event["state"], event["message"]

    def _on_step_measured(self, event: Json) -> None:
        self.step = event

    def _on_guard_counts(self, event: Json) -> None:
        self.guard = event

    def _on_log(self, event: Json) -> None:
        self.logs.append(event)

    @staticmethod
    def _crown(region: RegionView, node: NodeView) -> None:
        timing = (node.verdict or {})["timing"]
        region.best, region.speedup = node.id, timing["speedup"]
        region.low, region.high = timing["low"], timing["high"]

    def _note_progress(self, node: int, event: Json) -> None:
        step = self.estimated_step
        if self.progress and abs(self.progress[-1].step - step) < 1e-9:
            return
        usd = self.meter["spent_usd"] if self.meter else 0.0
        self.progress.append(ProgressPoint(self.judged, self._seconds(event), usd, step, node))

    def _seconds(self, event: Json) -> float:
        at: float = event.get("at_s", self._began_s)
        return at - self._began_s
