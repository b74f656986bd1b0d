"""Regions that models spend their time in, forged on one GPU: what the README's GPU table is made of.

    python benchmarks/gpu_regions.py [--out FILE] [--seconds S] [--limit S] [--twice] [NAME …]

Every row is one search from the templates alone, of 60 trials at most, with the product's own agent and
judge. Its speed-up is the one the product reports: the winner re-measured with new inputs, paired block by
block with the best stock (eager, torch.compile, its max-autotune) from cold memory, median and 95 %
interval. Libraries are timed beside it on the same clock, also from cold memory; where one is faster than
every stock, the row's speed-up is against it. ``--twice`` measures all winners once more in new processes.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from gpu_rows import ROWS, Row, libraries

from kernelforge_lab.capture import Workload, capture, roofline
from kernelforge_lab.capture.cuda_clock import CudaClock
from kernelforge_lab.exc import ForgeError
from kernelforge_lab.history import NodeRecord
from kernelforge_lab.judge.compile_ahead import CompileAhead
from kernelforge_lab.judge.job import Job, Limits
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.statistics import bootstrap
from kernelforge_lab.judge.verdict import Verdict
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.log import EventLog
from kernelforge_lab.options import Options
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run
from kernelforge_lab.targets import get

RESULTS = Path(__file__).parent / "results" / "h200" / "regions.json"
TRIALS = 60
MODES: list[dict[str, Any]] = [{}, {"max_autotune": True, "coordinate_descent_tuning": True}]
# More than three times the L2 of an H200.
COLD_BYTES = 200 << 20
AA_QUADS = 24
# What measuring the winners once more may take beyond --limit.
AGAIN_S = 80
SECONDS_MIN = 6.0
# Of a row, beside its search: libraries, and compiling what was judged (from the cache).
ROW_EXTRA_S = 1.5
COMPILE_THREADS = 1


WAKE = Region.parse("""region(in0: bf16[512,512]) {
  t0 = aten.exp.default(in0) : bf16[512,512]
  t1 = aten.sum.dim_IntList(t0, [1], True) : bf16[512,1]
  t2 = aten.div.Tensor(t0, t1) : bf16[512,512]
  return t2
}""")


class KeptJudge:
    """One pool for all rows (its processes take ten seconds to start); notes what every candidate cost."""

    def __init__(self, pool: JudgePool, limits: Limits) -> None:
        self.pool, self.limits = pool, limits
        self.jobs: list[Job] = []
        self.verdicts: list[Verdict] = []

    def prepare(self, region: Any, stats: Any) -> Any:
        return self.pool.prepare(region, stats)

    def submit(self, job: Job) -> Any:
        future = self.pool.submit(replace(job, limits=self.limits))
        future.add_done_callback(lambda done: self.note(job, done))
        return future

    def note(self, job: Job, done: Any) -> None:
        if not done.cancelled() and done.exception() is None and not job.finalist:
            self.jobs.append(job)
            self.verdicts.append(done.result())

    def close(self) -> None:
        """The next row needs it."""


def compile_ahead(regions: list[Region], pool: JudgePool) -> None:
    """Compile all stock at once, a process each; wake the judge's processes meanwhile.

    Compiling every kernel that max-autotune looks at takes ten seconds a region; inductor's cache on disk
    then has the result, and no row's search waits for a compiler.
    """
    awake = pool.prepare(WAKE)
    workers = [CompileAhead(COMPILE_THREADS, "cuda", MODES) for _ in regions]
    for worker, region in zip(workers, regions, strict=True):
        worker.begin(region)
    for worker, region in zip(workers, regions, strict=True):
        problem = worker.wait(region, 120)
        worker.close()
        if problem:
            print(problem)
    awake.result()


def cold_us(clock: CudaClock, function: Callable[..., Any], row: Row) -> float:
    """Median device time of one call, inputs and outputs from cold memory."""
    size = sum(math.prod(shape) for shape in row.shapes) * 2
    sets = [row.inputs() for _ in range(min(64, COLD_BYTES // size + 2))]
    outputs: list[Any] = [None] * len(sets)

    def block() -> None:
        for i, inputs in enumerate(sets):
            outputs[i] = function(*inputs)

    block()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    block()
    host_s = time.perf_counter() - begin
    return statistics.median(clock.time(block, host_s)[1] for _ in range(9)) / len(sets) * 1e6


def control(clock: CudaClock) -> dict[str, float]:
    """A/A: the same function as both sides of an A B B A comparison."""
    row = next(row for row in ROWS if row.name == "RMSNorm 4096×4096")
    function = libraries(row)["F.rms_norm"]
    sets = [row.inputs() for _ in range(4)]
    outputs: list[Any] = [None] * len(sets)

    def block() -> None:
        for _ in range(6):
            for i, inputs in enumerate(sets):
                outputs[i] = function(*inputs)

    def side() -> float:
        return clock.time(block, 3e-3)[1]

    for _ in range(3):
        block()
    ratios = []
    for _ in range(AA_QUADS):
        a1, b1, b2, a2 = (side() for _ in "abba")
        ratios.append(math.log((a1 + a2) / (b1 + b2)))
    ratio, low, high = bootstrap(ratios).speedup
    return {"ratio": ratio, "low": low, "high": high}


def search(row: Row, workload: Workload, judge: KeptJudge, seconds: float) -> Run:
    options = Options(
        target="cuda",
        trials=TRIALS,
        minutes=seconds / 60,
        measure=False,
        title=row.name,
        proposers=("templates",),
        regions=(workload.regions[0].region.hash,),
    )
    rooms = Rooms(judge=lambda _: judge, capture=lambda *_, **__: workload)
    run = Run(options, log=EventLog(row.name), rooms=rooms)
    run.start(row.function, row.inputs())
    return run.wait()


def measured(
    row: Row, workload: Workload, judge: KeptJudge, seconds: float, clock: CudaClock
) -> dict[str, Any]:
    """One row of the JSON."""
    (item,) = workload.regions
    first = len(judge.verdicts)
    begin = time.perf_counter()
    run = search(row, workload, judge, seconds)
    taken_s = time.perf_counter() - begin
    jobs, verdicts = judge.jobs[first:], judge.verdicts[first:]
    (found,) = run.summary()["regions"]
    best = run.best()
    verdict = best.verdict if best is not None else None
    stocks = next((v.stocks_us for v in [verdict, *verdicts] if v is not None and v.stocks_us), {})
    offers = {}
    for name, function in libraries(row).items():
        try:
            offers[name] = round(cold_us(clock, function, row), 2)
        except Exception as error:  # noqa: BLE001 - a library that does not like this machine is no baseline
            print(f"  {name}: {type(error).__name__}: {str(error)[:200]}")
    library_us = min(offers.values(), default=None)
    proven = found["speedup"] is not None
    low, ratio, high = (found[k] if proven else 1.0 for k in ("low", "speedup", "high"))
    beaten = library_us / found["stock_us"] if library_us and found["stock_us"] else 1.0
    if proven and beaten < 1:
        low, ratio, high = low * beaten, ratio * beaten, high * beaten
    floor_us = roofline.bytes_moved(item.region) / workload.roofs.bandwidth_gbps / 1e3
    compiled = [us for name, us in stocks.items() if name != "eager"]
    builds = [get("cuda").build(job.kernel, job.region).compile_s for job in jobs if _compiles(job)]
    whole = [v.seconds for v in verdicts if v.status.is_correct]
    kernel_us = found["kernel_us"] if proven else None
    return {
        "name": row.name,
        "region": item.region.hash,
        "floor_us": floor_us,
        "eager_us": stocks.get("eager"),
        "compile_us": min(compiled, default=None),
        "compile_default_us": stocks.get("compiled"),
        "max_autotune_us": stocks.get("max-autotune"),
        "library_us": library_us,
        "libraries_us": offers,
        "stock": found["stock"] if beaten >= 1 else min(offers, key=offers.__getitem__),
        "stock_us": found["stock_us"],
        "kernel_us": kernel_us,
        "speedup": ratio,
        "low": low,
        "high": high,
        "over_eager": stocks.get("eager", 0) / kernel_us if kernel_us else 1.0,
        "of_floor": floor_us / kernel_us if kernel_us else None,
        "fresh_processes": _rounds(verdict) if proven else [],
        "trials": sum(1 for node in run.history.nodes.values() if node.parent is not None),
        "judged": len(verdicts),
        "statuses": _counts(v.status.value for v in verdicts),
        "compile_s": statistics.median(builds) if builds else None,
        "judge_s": statistics.median(whole) if whole else None,
        "search_s": round(taken_s, 1),
        "per_minute": round(len(verdicts) / taken_s * 60, 1),
        "strategy": _strategy(run, best),
        "params": dict(best.params) if best is not None else {},
        "resources": dict(verdict.resources) if verdict is not None else {},
        "ended": run.history.message,
        "source": best.source if best is not None else "",
    }


def _strategy(run: Run, best: NodeRecord | None) -> str:
    """Of the kernel whose parameters were tuned, where that is what made the best one."""
    while best is not None and best.strategy == "tune" and best.parent is not None:
        best = run.history.nodes[best.parent]
    return best.strategy if best is not None else ""


def _rounds(verdict: Verdict | None) -> list[float]:
    """The winner's speed-up in each of the fresh processes it was measured in; the lowest is reported."""
    certificate = verdict.certificate if verdict is not None else None
    return [timing["speedup"] for timing in certificate["timings"]] if certificate else []


def _compiles(job: Job) -> bool:
    try:
        get("cuda").build(job.kernel, job.region)
    except ForgeError:
        return False
    return True


def _counts(words: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


def again(
    rows: list[dict[str, Any]], workloads: dict[str, Workload], jobs: list[Job], end: float
) -> list[dict[str, Any]]:
    """The winners measured once more, in new processes and on other inputs."""
    found = []
    with JudgePool("cuda") as pool:
        for row in rows:
            if row["kernel_us"] is None or time.perf_counter() > end:
                continue
            match = next(job for job in jobs if _is_winner(job, row))
            (item,) = workloads[row["name"]].regions
            job = Job(item.region, match.kernel, item.stats, seed=77, finalist=True)
            verdict = pool.submit(job).result()
            timing = verdict.timing
            row_again = {
                "name": row["name"],
                "status": verdict.status.value,
                "speedup": None,
                "kernel_us": None,
            }
            if timing is not None:
                row_again |= {"speedup": timing.speedup, "kernel_us": timing.kernel_us}
            found.append(row_again)
            print("again", found[-1], flush=True)
    return found


def _is_winner(job: Job, row: dict[str, Any]) -> bool:
    kernel = job.kernel
    same = kernel.source == row["source"] and dict(kernel.params) == row["params"]
    return job.region.hash == row["region"] and same


def line(row: dict[str, Any]) -> str:
    keys = ("floor_us", "eager_us", "compile_us", "library_us", "kernel_us")
    times = "".join(f"{row[key]:8.1f}" if row[key] is not None else "       –" for key in keys)
    share = f"{row['of_floor']:5.0%}" if row["of_floor"] else "    –"
    gain = f"{row['speedup']:5.2f}× ({row['low']:.2f}–{row['high']:.2f})  {row['over_eager']:5.1f}× eager"
    work = f"{row['trials']} trials, {row['judged']} judged in {row['search_s']:.0f} s"
    return f"{row['name']:30}{times}  {share}  {gain}  {work}  {row['strategy']} {row['params']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seconds", type=float, default=120.0, help="of one row's search")
    parser.add_argument(
        "--limit", type=float, default=3600.0, help="seconds after which no further row starts"
    )
    parser.add_argument("--judge-seconds", type=float, default=2.5, help="of one kernel's timing, at most")
    parser.add_argument("--twice", action="store_true")
    options = parser.parse_args()
    begin = time.perf_counter()
    chosen = [r for r in ROWS if not options.names or any(n in r.name for n in options.names)]
    torch.set_grad_enabled(False)
    limits = Limits(time_s=options.judge_seconds, finalist_time_s=2 * options.judge_seconds)
    judge = KeptJudge(JudgePool("cuda"), limits)
    clock = CudaClock()
    workloads: dict[str, Workload] = {}
    for row in chosen:
        workloads[row.name] = capture(row.function, row.inputs(), target="cuda")
    print(f"captured after {time.perf_counter() - begin:.0f} s", flush=True)
    compile_ahead([workload.regions[0].region for workload in workloads.values()], judge.pool)
    print(f"stock compiled after {time.perf_counter() - begin:.0f} s", flush=True)
    roofs = next(iter(workloads.values())).roofs
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "versions": {
            "python": platform.python_version(),
            "cuda": torch.version.cuda,
            **{name: _version(name) for name in ("torch", "triton", "pycuda", "liger-kernel")},
        },
        "triad_tbs": roofs.bandwidth_gbps / 1e3,
        "limits": {
            "judge_seconds": options.judge_seconds,
            "trials": TRIALS,
            "seconds_a_row": options.seconds,
            "seconds_in_all": options.limit,
        },
        "aa": control(clock),
        "rows": [],
    }
    print(f"triad {result['triad_tbs']:.2f} TB/s, A/A {result['aa']}", flush=True)
    for place, row in enumerate(chosen):
        left_s = options.limit - (time.perf_counter() - begin)
        if left_s < SECONDS_MIN:
            print(f"{row.name}: no time left")
            continue
        seconds = min(options.seconds, left_s / (len(chosen) - place) - ROW_EXTRA_S)
        try:
            found = measured(row, workloads[row.name], judge, max(SECONDS_MIN, seconds), clock)
        except Exception:
            if not result["rows"]:
                raise
            traceback.print_exc()
            continue
        result["rows"].append(found)
        print(line(found), flush=True)
        _write(options.out, result)
    judge.pool.close()
    if options.twice:
        result["twice"] = again(result["rows"], workloads, judge.jobs, begin + options.limit + AGAIN_S)
        _write(options.out, result)


def _write(path: Path, result: dict[str, Any]) -> None:
    rows = result["rows"]
    result["geomean"] = math.exp(sum(math.log(row["speedup"]) for row in rows) / len(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
