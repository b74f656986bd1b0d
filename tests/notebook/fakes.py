"""A made-up run: deterministic events of a small Gemma-like model, and a Run that plays them."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from typing import Any

from kernelforge_lab import events as ev
from kernelforge_lab.log import EventLog
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store

REGIONS = (
    # title, ops, count, time_us, share, floor_us, input specs, output specs
    ("add·rms_norm", ("pow.Tensor_Scalar", "mean.dim", "rsqrt.default"), 30, 1723.0, 0.182, 980.0),
    ("gelu·mul", ("gelu.default", "mul.Tensor"), 30, 1380.0, 0.146, 690.0),
    ("q_norm·rope", ("pow.Tensor_Scalar", "mean.dim", "mul.Tensor", "cat.default"), 25, 1010.0, 0.089, 520.0),
    ("mul·neg·cat·add", ("mul.Tensor", "neg.default", "cat.default"), 25, 560.0, 0.049, 310.0),
    ("softmax·where", ("where.self", "_softmax.default"), 30, 330.0, 0.035, 250.0),
    ("tanh·div·mul", ("div.Tensor", "tanh.default", "mul.Tensor"), 1, 900.0, 0.011, 700.0),
    ("scatter·add", ("scatter.value",), 2, 210.0, 0.004, 150.0),
)
VENDOR = (("linear", 210, 0.336), ("scaled_dot_product_attention", 30, 0.081), ("embedding", 1, 0.004))
IDEAS = {
    "templates": ("one pass, rows over threads", "two passes", "wider vectors", "tiled columns", "recompute"),
    "llm": ("keep the row in registers", "prefetch the next row", "online variance"),
    "human": ("my own loop order",),
}
FAILURES = (
    ("compile_error", "kernel.cpp:14:9: error: use of undeclared identifier 'rowz'"),
    ("wrong", "out0[3, 17]: expected 0.482, got 0.501, 6.1× the bound (rows with one outlier)"),
    ("out_of_bounds", "wrote 4 bytes past the end of out0"),
    ("timeout", "still running after 2.0 s"),
)


PROMPT = "The region reads two tensors and writes one; the roof is 980 µs. Write one file."


def source(strategy: str, width: int) -> str:
    return f"""// forge: target cpu
// forge: tune ROWS_PER_THREAD 1 2 4
// forge: launch add_rms_norm args=(in0, in1, in2, out0)
// forge: idea {strategy}
#include "kernelforge.h"

/* {strategy}: each thread owns whole rows,
   so nothing is shared between threads. */
extern "C" void add_rms_norm(const float* in0, const float* in1, const float* in2, float* out0) {{
    #pragma omp parallel for schedule(static, ROWS_PER_THREAD)
    for (int64_t row = 0; row < ROWS; ++row) {{
        const float* a = in0 + row * COLS;
        const float* b = in1 + row * COLS;
        float sum = 0.0f;
        #pragma omp simd reduction(+:sum)
        for (int64_t i = 0; i < COLS; i += {width}) {{
            const float x = a[i] + b[i];
            sum += x * x;
        }}
        const float scale = 1.0f / std::sqrt(sum / COLS + 1e-6f);
        for (int64_t i = 0; i < COLS; ++i)
            out0[row * COLS + i] = (a[i] + b[i]) * scale * (1.0f + in2[i]);
    }}
}}
"""


def region_json(index: int) -> dict[str, Any]:
    title, ops, count, time_us, share, floor_us = REGIONS[index]
    lines = [f"  t{i} = aten.{op}(in0) : f32[512,2304]" for i, op in enumerate(ops)]
    text = "\n".join(
        ["region(in0: f32[512,2304], in1: f32[512,2304]) {", *lines, f"  return t{len(ops) - 1}", "}"]
    )
    eligible = "scatter" not in title
    return {
        "hash": f"{index:02d}f0c1e2a3b4",
        "title": title,
        "text": text,
        "ops": [f"aten.{op}" for op in ops],
        "count": count,
        "time_us": time_us,
        "share": share,
        "floor_us": floor_us,
        "ceiling": round(time_us / floor_us, 3) if eligible else 1.0,
        "eligible": eligible,
        "reason": "" if eligible else "scatter is not supported yet",
        "inputs": ["f32[512,2304]", "f32[512,2304]"],
        "outputs": ["f32[512,2304]"],
    }


def verdict(status: str, evidence: str, kernel_us: float, stock_us: float, speedup: float) -> dict[str, Any]:
    correct = status in ("faster", "slower")
    timing = {
        "kernel_us": kernel_us,
        "stock": "compile",
        "stock_us": stock_us,
        "speedup": speedup,
        "low": round(speedup * 0.97, 4),
        "high": round(speedup * 1.03, 4),
        "samples": 64,
        "clock": "kernel",
    }
    return {
        "status": status,
        "evidence": evidence,
        "checks": {"values": 24, "special_values": 8, "guard_bands": 6, "fresh_seeds": 3}
        if correct
        else {"values": 2},
        "max_error": 0.42 if correct else None,
        "timing": timing if correct else None,
        "stocks_us": {"eager": round(stock_us * 1.6, 2), "compile": stock_us} if correct else {},
        "resources": {"text_bytes": 1840.0},
        "binary_hash": "9f2c41d07be3",
        "seconds": 0.84,
    }


def script(
    seed: int = 0, trials: int = 60, title: str = "gemma4 (small)", run: str = "r-20261201-gemma4"
) -> Iterator[ev.Event]:
    """The events of a whole run; equal for equal arguments."""
    rng = random.Random(seed)
    budget = {"minutes": 3.0, "trials": float(trials), "usd": 1.0}
    regions = [region_json(i) for i in range(len(REGIONS))]
    vendor = [{"name": n, "count": c, "time_us": 900.0, "share": s} for n, c, s in VENDOR]
    yield ev.RunState("starting", "capturing the model")
    yield ev.RunStarted(
        run=run,
        title=title,
        target="cpu",
        device="2 threads of a fake CPU",
        level="region",
        seed=seed,
        proposers=["templates", "llm"],
        budget=budget,
        step_ms=284.2,
        busy=0.97,
        ceiling=1.52,
        roofs={"bandwidth_gbps": 18.4, "gflops": 96.0},
        regions=regions,
        vendor=vendor,
        uncaptured=[],
        advice="",
    )
    yield ev.RunState("running")
    nodes: dict[str, list[int]] = {r["hash"]: [] for r in regions}
    best: dict[str, tuple[int, float]] = {}
    ids = itertools.count()
    roots: dict[str, int] = {}
    for trial in range(1, trials + 1):
        eligible = [r for r in regions if r["eligible"]]
        region = eligible[min(int(rng.expovariate(0.7)), len(eligible) - 1)]
        name = region["hash"]
        stock_us = round(region["time_us"] * 0.8, 1)
        if name not in roots:
            yield ev.RegionState(name, "searching", "measuring stock")
            root = roots[name] = next(ids)
            yield ev.NodeAdded(root, name, None, "stock", "", "PyTorch: compile", "")
            yield ev.NodeJudged(root, name, verdict("slower", "", stock_us, stock_us, 1.0), 0.2)
            yield ev.RegionState(name, "searching")
        node = next(ids)
        parents = nodes[name][-12:]
        parent = roots[name] if len(parents) < 3 or rng.random() < 0.12 else rng.choice(parents)
        proposer = "templates" if len(nodes[name]) < 3 else rng.choice(("templates", "llm", "llm", "human"))
        idea = rng.choice(IDEAS[proposer])
        yield ev.NodeAdded(
            node,
            name,
            parent,
            proposer,
            idea,
            idea,
            source(idea, rng.choice((4, 8, 16))),
            {"ROWS_PER_THREAD": rng.choice((1, 2, 4))},
        )
        if rng.random() < 0.27:
            status, evidence = rng.choice(FAILURES)
            judged, reward = verdict(status, evidence, 0, stock_us, 0), 0.05
        else:
            reach = region["ceiling"] * 0.8
            speedup = round(min(reach, 0.75 + rng.random() * 0.5 + 0.02 * len(nodes[name])), 4)
            status = "faster" if speedup * 0.97 > 1 else "slower"
            judged, reward = verdict(status, "", round(stock_us / speedup, 2), stock_us, speedup), 0.5
            nodes[name].append(node)
        if proposer == "llm":
            yield ev.ModelCalled(
                node, name, parent, "a-fake-model", f"Make {region['title']} faster.\n{PROMPT}", f"{idea}\n```cpp\n…\n```",
                2100, 1500, 640, 0.006, 3.2, "kernel",
            )  # fmt: skip
        yield ev.NodeJudged(node, name, judged, reward)
        if judged["status"] == "faster" and judged["timing"]["speedup"] > best.get(name, (0, 1.0))[1]:
            best[name] = (node, judged["timing"]["speedup"])
            t = judged["timing"]
            yield ev.RegionState(name, "searching", "", node, t["speedup"], t["low"], t["high"])
        if trial == 30:
            yield ev.NodeMarked(node, name, "pinned")
        elapsed = 1.6 * trial
        yield ev.Meter(
            trial,
            trials,
            elapsed,
            180.0,
            1.6 * (trials - trial),
            round(0.003 * trial, 4),
            1.0,
            f"judging {region['title']}",
        )
    for region in regions:
        if region["eligible"]:
            at = best.get(region["hash"])
            yield ev.RegionState(
                region["hash"],
                "done",
                "no better kernel in 8 tries" if at else "nothing faster found",
                at[0] if at else None,
                at[1] if at else None,
                at[1] * 0.97 if at else None,
                at[1] * 1.03 if at else None,
            )
    yield ev.RunState("measuring", "comparing the whole step with the stock model")
    yield ev.StepMeasured("eager", 284.2, 211.7, 1.342, 1.314, 1.367, 3.1e-06, True, True)
    yield ev.RunState("finished", "")


def fixture_events(trials: int = 40) -> list[dict[str, Any]]:
    """What tests/notebook/events.json holds: the script, numbered and stamped without a clock."""
    ticks = iter(range(10**6))
    log = EventLog("r-20261201-gemma4", clock=lambda: 1796110000.0 + next(ticks) * 0.5)
    for event in script(trials=trials):
        log.emit(event)
    return log.events


class FakeRun(Run):
    """Plays the script in a thread, as an agent would; ``delay_s`` between events."""

    def __init__(
        self,
        *,
        delay_s: float = 0.0,
        trials: int = 60,
        title: str = "gemma4 (small)",
        hold_at: int | None = None,
        stored_as: str | None = None,
    ) -> None:
        log = EventLog(stored_as, Store()) if stored_as else EventLog("fake")
        super().__init__(log=log)
        self.calls: list[str] = []
        self._delay_s = delay_s
        run = {"run": stored_as} if stored_as else {}
        self._events = list(script(trials=trials, title=title, **run))
        self._hold_at = hold_at
        self._go = threading.Event()
        self._go.set()
        self._stopped = threading.Event()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._by_hand = itertools.count(100_000)

    @property
    def is_steerable(self) -> bool:
        return True

    def play(self) -> FakeRun:
        self._thread = threading.Thread(target=self._perform, daemon=True)
        self._thread.start()
        return self

    def pause(self) -> FakeRun:
        self.calls.append("pause")
        self._go.clear()
        self.log.emit(ev.RunState("paused"))
        return self

    def resume(self) -> FakeRun:
        self.calls.append("resume")
        self.log.emit(ev.RunState("running"))
        self._go.set()
        return self

    def stop(self) -> FakeRun:
        self.calls.append("stop")
        self._stopped.set()
        self._go.set()
        return self

    def submit(
        self, source: str, region: str | None = None, *, parent: int | None = None, idea: str = ""
    ) -> int:
        """Judged after a moment; a source with FAIL in it is wrong."""
        place = self.node(parent).region if parent is not None else self.history.find(region).hash
        node = next(self._by_hand)
        self.log.emit(ev.NodeAdded(node, place, parent, "human", "by hand", idea, source))
        bad = verdict(*FAILURES[1], 0, 1104.0, 0)
        judged = bad if "FAIL" in source else verdict("faster", "", 690.0, 1104.0, 1.6)
        threading.Timer(0.3, lambda: self.log.emit(ev.NodeJudged(node, place, judged, 0.6))).start()
        return node

    def add_budget(self, **more: float) -> FakeRun:
        self.calls.append(f"add_budget {more}")
        return self

    def switch(self, region: str, on: bool = True) -> FakeRun:
        self.calls.append(f"switch {region} {on}")
        self.log.emit(
            ev.RegionState(region, "searching" if on else "off", "" if on else "switched off by you")
        )
        return self

    def _mark(self, node: int, mark: str) -> FakeRun:
        self.log.emit(ev.NodeMarked(node, self.node(node).region, mark))
        return self

    def continue_from(self, node: int, hint: str = "") -> FakeRun:
        self.calls.append(f"continue_from {node} {hint}")
        return self

    def wait(self, timeout: float | None = None) -> FakeRun:
        self._done.wait(timeout)
        return self

    def _perform(self) -> None:
        for i, event in enumerate(self._events):
            if i == self._hold_at:
                self._go.clear()
            while not self._go.wait(0.02):
                pass
            if self._stopped.is_set():
                self.log.emit(ev.RunState("stopped", "stopped by you"))
                break
            self.log.emit(event)
            self._stopped.wait(self._delay_s)
        self._done.set()
