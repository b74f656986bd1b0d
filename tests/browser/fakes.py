"""A judge and a proposer that take no time, so that a browser test waits for the front end alone.

Magic, capture, agent, tree, store, guard and widget are the real ones.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from kernelforge_lab.capture import capture
from kernelforge_lab.judge.job import Job, Stock
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.notebook import magics
from kernelforge_lab.notebook.calls import ModelCall
from kernelforge_lab.options import Options
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run
from tests.notebook.fakes import source

IDEAS = (
    "one pass over rows",
    "two passes",
    "wider vectors",
    "tiled columns",
    "recompute",
    "prefetch the next row",
)


class FakeWriter:
    """Always has another idea, for any parent."""

    name = "templates"

    def refuses(self, region: Any, target: str) -> str | None:
        return None

    def strategies(self, region: Any, target: str, parent: Kernel | None) -> tuple[str, ...]:
        return IDEAS

    def propose(self, ask: Ask) -> Kernel:
        text = source(ask.strategy, 4 + ask.seed)
        return Kernel(
            text, ask.region.hash, ask.target, proposer=self.name, strategy=ask.strategy, idea=ask.strategy
        )


class FakeJudge:
    """Verdicts follow from the source's text; each takes ``seconds``. Nothing is compiled or run."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def prepare(self, region: Any, stats: Any) -> Future[Stock]:
        return self._later(
            Stock(
                region.hash,
                {"eager": 160.0, "compiled": 100.0},
                compiled_kernels=1,
                noise=0.004,
                floor_us=5.0,
            )
        )

    def submit(self, job: Job) -> Future[Verdict]:
        return self._later(self._verdict(job))

    def close(self) -> None:
        pass

    def _verdict(self, job: Job) -> Verdict:
        text = job.kernel.source
        if "static_assert(false" in text:
            message = text.split('"')[-2]
            return Verdict(
                Status.COMPILE_ERROR,
                f"kernel.cpp:30:1: error: static assertion failed: {message}",
                seconds=0.1,
            )
        luck = hashlib.sha256(text.encode()).digest()
        if luck[0] < 50:
            return Verdict(
                Status.WRONG, "out0[3, 17]: expected 0.482, got 0.501", checks={"values": 2}, seconds=0.2
            )
        # A little better with every try (the writer's number), so that no search ends for want of progress.
        tries = int(re.search(r"i \+= (\d+)", text)[1])  # type: ignore[index]
        speedup = 0.9 + 0.01 * tries + luck[1] / 2560
        timing = Timing(100 / speedup, "compiled", 100.0, speedup, speedup * 0.98, speedup * 1.02, 64)
        status = Status.FASTER if timing.low > 1 else Status.SLOWER
        checks = {"values": 24, "guard_bands": 6}
        return Verdict(
            status,
            "",
            checks,
            0.4,
            timing,
            {"eager": 160.0, "compiled": 100.0},
            {"text_bytes": 1840.0},
            luck.hex()[:12],
            0.2,
        )

    def _later(self, result: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            time.sleep(self.seconds)
            if future.set_running_or_notify_cancel():
                future.set_result(result)

        threading.Thread(target=run, daemon=True).start()
        return future


def even(*args: Any, **kwargs: Any) -> Any:
    """The real capture, with shares that a busy machine cannot change."""
    found = capture(*args, **kwargs)
    share = 0.8 / max(len(found.regions), 1)
    return replace(found, regions=tuple(replace(r, share=share) for r in found.regions), vendor=())


def install(seconds: float = 0.4) -> None:
    """Let ``%%forge`` of this kernel use both."""

    def start(call: ModelCall, options: Options) -> Run:
        rooms = Rooms(
            capture=even,
            judge=lambda _options: FakeJudge(seconds),
            proposers=lambda _options: [FakeWriter()],
            memory=lambda _options, _run: None,
        )
        return Run(options, rooms=rooms).start(call.module, call.args, call.kwargs)

    magics.start = start
