"""A judge, regions and a proposer without compilers: a synthetic landscape that answers at once."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from kernelforge_lab.capture.workload import Roofs, VendorOp, Workload, WorkloadRegion
from kernelforge_lab.judge.job import Job, Stock
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Op, Ref, Region
from kernelforge_lab.kernels.spec import TensorSpec
from kernelforge_lab.kernels.stats import InputStats
from kernelforge_lab.proposers.base import Ask


def region(size: int, op: str = "relu") -> Region:
    spec = TensorSpec.contiguous((size, 1024))
    return Region((spec,), (Op("t0", f"aten.{op}.default", (Ref("in0"),), (), (spec,)),), ("t0",))


ROOFS = Roofs(bandwidth_gbps=20.0, gflops=100.0)


def item(
    region: Region,
    share: float = 0.3,
    *,
    time_us: float = 100.0,
    floor_us: float = 20.0,
    eligible: bool = True,
    reason: str = "",
) -> WorkloadRegion:
    return WorkloadRegion(region, 2, time_us, share, floor_us, 5.0, eligible, reason, (InputStats(),))


def workload(*items: WorkloadRegion) -> Workload:
    """A captured model of two regions (or those given)."""
    regions = items or (item(region(512), 0.4), item(region(256, "exp"), 0.2))
    vendor = (VendorOp("aten.mm.default", 2, 500.0, 0.3),)
    return Workload("Toy", "cpu", "region", 12.0, 0.9, tuple(regions), vendor, (), ROOFS)


class FakeProposer:
    """Writes one kernel per (parent, strategy); the source's text decides how fast it will be."""

    name = "templates"

    def __init__(self, strategies: int = 5, depth: int = 2, tune: bool = True) -> None:
        self._names = tuple(f"s{i}" for i in range(strategies))
        self._depth = depth
        self._tune = tune

    def refuses(self, region: Region, target: str) -> str | None:
        return "this fake does not write sort" if region.ops[0].short_name == "sort" else None

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        depth = parent.source.count("/") if parent else 0
        return self._names if depth < self._depth else ()

    def propose(self, ask: Ask) -> Kernel | None:
        path = ask.parent.source.split("path ")[1].split("\n")[0] if ask.parent else ""
        lines = ["// forge: target cpu"]
        if self._tune:
            lines.append("// forge: tune BLOCK 8 16 32 64")
        lines += ["// forge: launch f args=(in0, out0)", f"path {path}/{ask.strategy}"]
        source = "\n".join(lines) + "\n"
        return Kernel(source, ask.region.hash, ask.target, proposer=self.name, strategy=ask.strategy)


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@dataclass
class FakePool:
    """A JudgePool whose verdicts follow from the kernel. ``unit`` scales every time.

    ``hold`` makes every submission wait for ``release``; ``broken`` makes the judge itself fail.
    """

    unit: float = 1.0
    flattering: bool = False
    hold: bool = False
    broken: bool = False
    noise: float = 0.004
    jobs: list[Job] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    waiting: list[tuple[Future[Verdict], Verdict]] = field(default_factory=list)
    closed: bool = False
    threads: int = 2
    submitted: threading.Event = field(default_factory=threading.Event)

    def prepare(self, region: Region, stats: tuple[InputStats, ...]) -> Future[Stock]:
        self.prepared.append(region.hash)
        future: Future[Stock] = Future()
        times = {"eager": self.unit * 100.0, "compiled": self.unit * 80.0}
        future.set_result(Stock(region.hash, times, compiled_kernels=1, noise=self.noise))
        return future

    def submit(self, job: Job) -> Future[Verdict]:
        self.jobs.append(job)
        future: Future[Verdict] = Future()
        if self.broken:
            future.set_exception(RuntimeError("the judge lost its mind"))
        elif self.hold:
            self.waiting.append((future, self.verdict(job)))
        else:
            future.set_result(self.verdict(job))
        self.submitted.set()
        return future

    def verdict(self, job: Job) -> Verdict:
        luck = draw(job.kernel.source, job.region.hash)
        if luck < 0.2:
            return Verdict(Status.COMPILE_ERROR, "error: expected ';'", seconds=0.5)
        if luck < 0.3:
            return Verdict(Status.WRONG, "wrong at out0[3]", checks={"random": 3}, seconds=1.0)
        speedup = 0.6 + 2.4 * draw("speed", job.kernel.source, job.region.hash)
        speedup *= 0.8 + 0.4 * draw("tuned", job.kernel.source, job.kernel.params)
        if job.finalist and self.flattering:
            speedup *= 0.25
        stock_us = self.unit * 80.0
        timing = Timing(stock_us / speedup, "compiled", stock_us, speedup, speedup * 0.98, speedup * 1.02, 40)
        status = Status.FASTER if timing.low > 1 else Status.SLOWER
        code = hashlib.sha256(job.kernel.hash.encode()).hexdigest()[:12]
        return Verdict(status, "", {"random": 9}, 0.4, timing, binary_hash=code, seconds=2.0)

    def release(self) -> None:
        self.hold = False
        for future, verdict in self.waiting:
            if future.set_running_or_notify_cancel():
                future.set_result(verdict)
        self.waiting.clear()

    def close(self) -> None:
        self.closed = True
