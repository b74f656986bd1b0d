"""What a run's events say happened: nodes, regions, the measured step. Live and loaded runs alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .exc import ProblemError
from .judge.verdict import Verdict
from .kernels.kernel import Kernel
from .kernels.region import Region

if TYPE_CHECKING:
    import pandas as pd

Json = dict[str, Any]

_TIMING: Final = ("kernel_us", "stock", "stock_us", "speedup", "low", "high")
_NODE_COLUMNS: Final = (
    "region ops node parent proposer strategy status kernel_us stock stock_us speedup low high "
    "reward evidence params idea"
).split()
_REGION_COLUMNS: Final = (
    "region ops count time_us share ceiling state stock stock_us kernel_us speedup low high best nodes reason"
).split()


@dataclass
class NodeRecord:
    """A kernel of the run. ``verdict`` is None while it is being judged (or was abandoned)."""

    id: int
    region: str
    parent: int | None
    proposer: str
    strategy: str
    idea: str
    source: str
    params: dict[str, int]
    verdict: Verdict | None = None
    reward: float | None = None
    mark: str = ""

    @property
    def status(self) -> str:
        if self.parent is None and self.proposer == "stock":
            return "stock"
        return self.verdict.status.value if self.verdict else "pending"

    def kernel(self, target: str) -> Kernel:
        params = tuple(sorted(self.params.items()))
        return Kernel(self.source, self.region, target, params, self.proposer, self.strategy, self.idea)

    def line(self) -> str:
        """The verdict in one line, always against what."""
        verdict = self.verdict
        t = verdict.timing if verdict and verdict.status.is_correct else None
        if t:
            against = f"{t.kernel_us:.1f} µs against {t.stock_us:.1f} µs of {t.stock}"
            return f"node {self.id}: {self.status} {t.speedup:.2f}× ({t.low:.2f}–{t.high:.2f}), {against}"
        evidence = f": {verdict.evidence}" if verdict and verdict.evidence else ""
        return f"node {self.id}: {self.status}{evidence}"

    def __str__(self) -> str:
        head = f"node {self.id} · {self.proposer} · {self.strategy} · {self.status}"
        evidence = f"\n{self.verdict.evidence}" if self.verdict and self.verdict.evidence else ""
        return f"{head}{evidence}\n\n{self.source}"


@dataclass
class RegionRecord:
    """A region of the run; ``info`` is capture's JSON. ``proven`` once ``best`` was re-measured faster."""

    info: Json
    state: str
    reason: str
    best: int | None = None
    root: int | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    nodes: list[int] = field(default_factory=list)

    @property
    def hash(self) -> str:
        return str(self.info["hash"])

    @property
    def proven(self) -> bool:
        return self.state == "done" and self.best is not None and self.speedup is not None

    @property
    def status(self) -> str:
        """``faster`` for a proven winner, ``stock`` when PyTorch stays, else the region's state."""
        if self.proven:
            return "faster"
        return "stock" if self.state == "done" else self.state


class History:
    """A fold over events; unknown kinds (of a newer version) are skipped."""

    def __init__(self, events: Iterable[Mapping[str, Any]] = ()) -> None:
        self.started: Json = {}
        self.state = "starting"
        self.message = ""
        self.regions: dict[str, RegionRecord] = {}
        self.nodes: dict[int, NodeRecord] = {}
        self.meter: Json = {}
        self.step: Json = {}
        self.guard: Json = {}
        self.calls: list[Json] = []
        for event in events:
            self.add(event)

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        if kind == "run_started":
            self.started = dict(event)
            for info in event["regions"]:
                state = "waiting" if info["eligible"] else "ineligible"
                self.regions[info["hash"]] = RegionRecord(info, state, info["reason"])
        elif kind == "run_state":
            self.state, self.message = event["state"], event["message"]
        elif kind == "region_state":
            self._region_state(event)
        elif kind == "node_added":
            self._node_added(event)
        elif kind == "node_judged":
            node = self.nodes[event["node"]]
            node.verdict, node.reward = Verdict.from_json(event["verdict"]), event["reward"]
        elif kind == "node_marked":
            if event["node"] in self.nodes:
                self.nodes[event["node"]].mark = event["mark"]
        elif kind == "model_called":
            self.calls.append(dict(event))
        elif kind == "meter":
            self.meter = dict(event)
        elif kind == "step_measured":
            self.step = dict(event)
        elif kind == "guard_counts":
            self.guard = dict(event)

    @property
    def target(self) -> str:
        return str(self.started.get("target", ""))

    def find(self, pattern: str | None) -> RegionRecord:
        """The one region that a hash, a prefix of it or a part of its ops names; None: the only one."""
        hits = [
            record
            for record in self.regions.values()
            if pattern is None
            or record.hash.startswith(pattern.lower())
            or pattern in record.info["title"]
            or any(pattern in op for op in record.info["ops"])
        ]
        exact = [record for record in hits if record.hash == pattern]
        if len(exact or hits) == 1:
            return (exact or hits)[0]
        listed = ", ".join(f"{r.hash} ({r.info['title']})" for r in list(self.regions.values())[:8]) or "none"
        found = "no region matches" if not hits else f"{len(hits)} regions match"
        what = f"{found} {pattern!r}" if pattern is not None else "region must be named"
        raise ProblemError(f"region: {what}.", f"Give one of these hashes: {listed}.")

    def best(self, record: RegionRecord) -> NodeRecord | None:
        return self.nodes[record.best] if record.best is not None else None

    def winners(self) -> list[tuple[RegionRecord, NodeRecord]]:
        """Regions with their re-measured winner, largest share of the step first."""
        proven = [(r, self.nodes[r.best]) for r in self.regions.values() if r.proven and r.best is not None]
        return sorted(proven, key=lambda pair: -pair[0].info["share"])

    def region(self, record: RegionRecord) -> Region:
        return Region.parse(record.info["text"])

    def frame(self) -> pd.DataFrame:
        """One row per node; times in µs, ``speedup`` against the fastest stock with its 95 % interval."""
        import pandas as pd

        rows = [
            {
                "region": node.region,
                "ops": self.regions[node.region].info["title"],
                "node": node.id,
                "parent": node.parent,
                "proposer": node.proposer,
                "strategy": node.strategy,
                "status": node.status,
                **_timing(node.verdict),
                "reward": node.reward,
                "evidence": node.verdict.evidence if node.verdict else "",
                "params": node.params,
                "idea": node.idea,
            }
            for node in self.nodes.values()
        ]
        frame = pd.DataFrame(rows, columns=_NODE_COLUMNS)
        return frame.astype({"parent": "Int64"})

    def table(self) -> pd.DataFrame:
        """One row per region, largest share first; ``speedup`` only for re-measured winners."""
        import pandas as pd

        rows = []
        for record in sorted(self.regions.values(), key=lambda r: -r.info["share"]):
            row = {key: record.info[key] for key in ("count", "time_us", "share", "ceiling")}
            row |= {"region": record.hash, "ops": record.info["title"], "state": record.status}
            row |= self._numbers(record)
            row |= {"best": record.best, "nodes": max(len(record.nodes) - 1, 0), "reason": record.reason}
            rows.append(row)
        return pd.DataFrame(rows, columns=_REGION_COLUMNS).astype({"best": "Int64"})

    def summary(self) -> Json:
        """What ``kernelforge forge --json`` prints. ``step`` is None when the model was not measured."""
        regions = sorted(self.regions.values(), key=lambda r: -r.info["share"])
        return {
            "run": self.started.get("run", ""),
            "target": self.target,
            "ceiling": self.started.get("ceiling"),
            "busy": self.started.get("busy"),
            "step": self._step(),
            "regions": [
                {
                    "hash": record.hash,
                    "ops": record.info["ops"],
                    "count": record.info["count"],
                    "share": record.info["share"],
                    "ceiling": record.info["ceiling"],
                    "status": record.status,
                    **self._numbers(record),
                }
                for record in regions
            ],
            "spent_usd": self.meter.get("spent_usd", 0.0),
        }

    def _step(self) -> Json | None:
        keys = ("stock", "stock_ms", "forged_ms", "speedup", "low", "high", "max_error", "equal")
        if self.step:
            return {key: self.step[key] for key in keys}
        if not self.started or self.winners():
            return None
        # Nothing won, so the forged model is the model itself: no measurement could say more.
        step_ms = self.started["step_ms"]
        return dict(zip(keys, ("eager", step_ms, step_ms, 1.0, 1.0, 1.0, 0.0, True), strict=True))

    def _numbers(self, record: RegionRecord) -> Json:
        """Timing of a re-measured winner, else only what stock takes."""
        winner = self.best(record) if record.proven else None
        if winner:
            return _timing(winner.verdict)
        root = self.nodes[record.root].verdict if record.root is not None else None
        stock = root.timing if root else None
        return {
            **dict.fromkeys(_TIMING),
            "stock": stock.stock if stock else None,
            "stock_us": stock.stock_us if stock else None,
        }

    def _region_state(self, event: Mapping[str, Any]) -> None:
        record = self.regions[event["region"]]
        record.state, record.reason = event["state"], event["reason"]
        record.best, record.speedup = event["best"], event["speedup"]
        record.low, record.high = event["low"], event["high"]

    def _node_added(self, event: Mapping[str, Any]) -> None:
        names = ("region", "parent", "proposer", "strategy", "idea", "source", "params")
        node = NodeRecord(event["node"], **{name: event[name] for name in names})
        self.nodes[node.id] = node
        record = self.regions[node.region]
        record.nodes.append(node.id)
        if node.status == "stock":
            record.root = node.id


def _timing(verdict: Verdict | None) -> Json:
    timing = verdict.timing if verdict and verdict.status.is_correct else None
    return {key: getattr(timing, key) if timing else None for key in _TIMING}
