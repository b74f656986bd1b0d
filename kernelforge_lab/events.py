"""The typed event stream of a run. Store, widget, progress text and report read only this.

Every event is a frozen dataclass of JSON values; ``as_json`` adds ``kind``, ``seq`` and ``at_s`` come
from the log that numbers them. The TypeScript side (js/core/protocol.ts) mirrors these names.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

# Run states after which nothing more happens by itself.
ENDED: Final = frozenset({"finished", "stopped", "failed"})


@dataclass(frozen=True)
class Event:
    kind: ClassVar[str] = ""

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class RunStarted(Event):
    """First event. Times in ms for the step and µs for regions; shares are fractions of the step."""

    kind: ClassVar[str] = "run_started"
    run: str
    title: str
    target: str
    device: str
    level: str
    seed: int
    proposers: list[str]
    budget: dict[str, float]  # minutes, trials, usd
    step_ms: float
    busy: float
    ceiling: float
    roofs: dict[str, float]  # bandwidth_gbps, gflops
    regions: list[dict[str, Any]]  # see capture.workload.WorkloadRegion.as_json
    vendor: list[dict[str, Any]]  # {"name", "count", "time_us", "share"}: heavy ops kept on the library
    uncaptured: list[str]  # reasons, for people
    advice: str = ""


@dataclass(frozen=True)
class RegionState(Event):
    """``state``: waiting, searching, done, off, ineligible. ``reason`` says why it stopped."""

    kind: ClassVar[str] = "region_state"
    region: str
    state: str
    reason: str = ""
    best: int | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class NodeAdded(Event):
    """A kernel enters a region's tree, before it is judged. ``parent`` None: the region's root (stock)."""

    kind: ClassVar[str] = "node_added"
    node: int
    region: str
    parent: int | None
    proposer: str
    strategy: str
    idea: str
    source: str
    params: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeJudged(Event):
    """``verdict`` is judge.verdict.Verdict.as_json(); ``reward`` in [0, 1]."""

    kind: ClassVar[str] = "node_judged"
    node: int
    region: str
    verdict: dict[str, Any]
    reward: float


@dataclass(frozen=True)
class NodeMarked(Event):
    """A person's mark on a node. ``mark``: pinned, pruned, or empty when it was taken away."""

    kind: ClassVar[str] = "node_marked"
    node: int
    region: str
    mark: str


@dataclass(frozen=True)
class ModelCalled(Event):
    """One call of a language model (``proposers.base.ModelCall``). ``node``: the kernel it led to, if any.

    ``cached_tokens`` are part of ``input_tokens``, ``reasoning_tokens`` of ``output_tokens``.
    """

    kind: ClassVar[str] = "model_called"
    node: int | None
    region: str
    parent: int | None
    model: str
    prompt: str
    reply: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: float
    seconds: float
    outcome: str = ""
    reason: str = ""
    reasoning_tokens: int = 0
    is_estimate: bool = False


@dataclass(frozen=True)
class Meter(Event):
    """Progress. ``eta_s`` None when unknown."""

    kind: ClassVar[str] = "meter"
    trials: int
    trials_max: int
    elapsed_s: float
    limit_s: float
    eta_s: float | None
    spent_usd: float
    budget_usd: float
    doing: str = ""


@dataclass(frozen=True)
class RunState(Event):
    """``state``: starting, running, paused, stopping, measuring, finished, stopped, failed."""

    kind: ClassVar[str] = "run_state"
    state: str
    message: str = ""


@dataclass(frozen=True)
class StepMeasured(Event):
    """End-to-end A/B of the whole model: stock against forged, ratio stock/forged with its 95 % interval."""

    kind: ClassVar[str] = "step_measured"
    stock: str
    stock_ms: float
    forged_ms: float
    speedup: float
    low: float
    high: float
    max_error: float
    equal: bool
    installed: bool
    stock_bytes: int = 0
    forged_bytes: int = 0
    message: str = ""


@dataclass(frozen=True)
class GuardCounts(Event):
    """Calls served by kernels and fallbacks by reason, after apply."""

    kind: ClassVar[str] = "guard_counts"
    hits: int
    fallbacks: dict[str, int]


@dataclass(frozen=True)
class Log(Event):
    """A line for people; ``level``: info, warning, error."""

    kind: ClassVar[str] = "log"
    level: str
    message: str


EVENTS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        RunStarted,
        RegionState,
        NodeAdded,
        NodeJudged,
        NodeMarked,
        ModelCalled,
        Meter,
        RunState,
        StepMeasured,
        GuardCounts,
        Log,
    )
}


def from_json(data: dict[str, Any]) -> Event:
    """Rebuild an event from ``as_json`` (unknown kinds raise KeyError: an older reader, a newer run)."""
    fields = {key: value for key, value in data.items() if key not in ("kind", "seq", "at_s")}
    return EVENTS[data["kind"]](**fields)
