"""What capture hands to the search: regions with counts, times and limits. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..kernels.region import Region
from ..kernels.stats import InputStats

if TYPE_CHECKING:
    import pandas as pd

# Share of the roofline a very good memory-bound kernel reaches (search.md).
_REACHABLE: Final = 0.90
_WORTH_IT: Final = 1.03
_BUSY: Final = 0.60


@dataclass(frozen=True)
class Roofs:
    """Measured limits of the device.

    ``bandwidth_gbps`` of a triad larger than every cache, ``gflops`` of an fp32 matmul, ``call_us`` of the
    cheapest torch call; ``curve`` has (working set in bytes, GB/s) from small to large. ``half_gflops`` of
    a bf16 matmul on units of its own (0: the device has none).
    """

    bandwidth_gbps: float
    gflops: float
    call_us: float = 1.0
    curve: tuple[tuple[int, float], ...] = ()
    half_gflops: float = 0.0

    def bandwidth_at(self, working_set: int) -> float:
        """GB/s for a kernel that touches so many bytes: what the next smaller measured set reached."""
        best = max((gbps for _, gbps in self.curve), default=self.bandwidth_gbps)
        for size, gbps in self.curve:
            if size > working_set:
                break
            best = gbps
        return best

    def as_json(self) -> dict[str, Any]:
        return {
            "bandwidth_gbps": self.bandwidth_gbps,
            "gflops": self.gflops,
            "call_us": self.call_us,
            "curve": [list(point) for point in self.curve],
            "half_gflops": self.half_gflops,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Roofs:
        curve = tuple((int(size), float(gbps)) for size, gbps in data["curve"])
        return cls(
            float(data["bandwidth_gbps"]),
            float(data["gflops"]),
            float(data["call_us"]),
            curve,
            float(data["half_gflops"]),
        )


@dataclass(frozen=True)
class WorkloadRegion:
    """A distinct region of a workload.

    ``time_us`` is one stock occurrence inside the real forward, ``share`` all occurrences as a fraction of
    the step, ``floor_us`` the roofline's least time, ``ceiling`` the largest speed-up of the region
    that the roofline allows. ``reason`` says why it is not ``eligible``.
    """

    region: Region
    count: int
    time_us: float
    share: float
    floor_us: float
    ceiling: float
    eligible: bool = True
    reason: str = ""
    stats: tuple[InputStats, ...] = ()

    @property
    def headroom(self) -> float:
        """Fraction of its time that a very good kernel would save."""
        return 1 - 1 / self.ceiling if self.eligible else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "hash": self.region.hash,
            "title": self.region.title,
            "text": self.region.text,
            "ops": [op.target for op in self.region.ops],
            "count": self.count,
            "time_us": self.time_us,
            "share": self.share,
            "floor_us": self.floor_us,
            "ceiling": self.ceiling,
            "eligible": self.eligible,
            "reason": self.reason,
            "inputs": [str(spec) for spec in self.region.inputs],
            "outputs": [str(spec) for spec in self.region.outputs],
        }


@dataclass(frozen=True)
class VendorOp:
    """A heavy operator left to the library: ``time_us`` per call, ``share`` of the step over all calls."""

    name: str
    count: int
    time_us: float
    share: float


@dataclass(frozen=True)
class Workload:
    """A captured call. ``busy`` is the share of the step spent inside operators (the rest is Python)."""

    title: str
    target: str
    level: str
    step_ms: float
    busy: float
    regions: tuple[WorkloadRegion, ...]
    vendor: tuple[VendorOp, ...]
    uncaptured: tuple[str, ...]
    roofs: Roofs

    @property
    def ceiling(self) -> float:
        """Best end-to-end speed-up: 1 / (1 − Σ p (1 − t*/t0)) over the eligible regions (search.md)."""
        saved = sum(r.share * r.headroom for r in self.regions)
        return 1 / max(1 - saved, 1e-3)

    @property
    def advice(self) -> str:
        """One or two sentences a person should read before spending anything; empty when all is well."""
        words = []
        if not self.regions:
            words.append("Nothing was captured that a kernel could replace.")
        elif self.ceiling < _WORTH_IT:
            words.append(
                f"Even perfect kernels would speed this model up by {self.ceiling:.2f}x at most: "
                "the time is in library operators, a run is not worth it."
            )
        if self.regions and self.busy < _BUSY:
            waits = "" if self.target == "cpu" else " (launch-bound: the GPU waits for the host)"
            words.append(
                f"Operators keep the device busy for only {self.busy:.0%} of the step{waits}: "
                "larger inputs bring more here than faster kernels."
            )
        return " ".join(words)

    def region(self, hash_: str) -> WorkloadRegion:
        """The region with this hash; KeyError when there is none."""
        for item in self.regions:
            if item.region.hash == hash_:
                return item
        raise KeyError(hash_)

    def table(self) -> pd.DataFrame:
        """Regions, then library operators, ranked by share × headroom (times in µs)."""
        import pandas as pd

        rows: list[dict[str, Any]] = [
            {
                "region": r.region.hash,
                "ops": r.region.title,
                "count": r.count,
                "time_us": r.time_us,
                "share": r.share,
                "floor_us": r.floor_us,
                "ceiling": r.ceiling,
                "gain": r.share * r.headroom,
                "note": r.reason,
            }
            for r in self.regions
        ]
        rows += [
            {
                "region": "",
                "ops": op.name.removeprefix("aten."),
                "count": op.count,
                "time_us": op.time_us,
                "share": op.share,
                "floor_us": float("nan"),
                "ceiling": 1.0,
                "gain": 0.0,
                "note": "library",
            }
            for op in self.vendor
        ]
        columns = ["region", "ops", "count", "time_us", "share", "floor_us", "ceiling", "gain", "note"]
        table = pd.DataFrame(rows, columns=columns)
        return table.sort_values(["gain", "share"], ascending=False, ignore_index=True)


def region_ceiling(time_us: float, floor_us: float, call_us: float) -> float:
    """t0/t* with t* = floor/0.90, and never less than one call costs; at least 1."""
    target_us = max(floor_us / _REACHABLE, call_us)
    return max(1.0, time_us / target_us) if time_us > 0 else 1.0
