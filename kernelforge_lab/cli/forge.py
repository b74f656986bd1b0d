"""``kernelforge forge``: a whole run on a problem file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..problem import load_problem
from .arguments import add_problem

_STEP = ("stock", "stock_ms", "forged_ms", "speedup", "low", "high", "max_error", "equal")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "forge", help="search faster kernels for a problem, install and measure them"
    )
    add_problem(parser)
    parser.add_argument("--trials", type=int, default=60, help="kernels judged at most (default 60)")
    parser.add_argument("--minutes", type=float, default=5.0, help="time at most (default 5)")
    parser.add_argument("--budget-usd", type=float, default=0.0, help="money at most (default 0)")
    parser.add_argument("--proposer", default="templates", help="who writes kernels, comma-separated")
    parser.add_argument("--regions", default="", help="only these: hashes or op names, comma-separated")
    parser.add_argument("--report", metavar="FILE", help="write the report (self-contained HTML) here")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..run import forge

    problem = load_problem(options.problem, seed=options.seed)
    run = forge(
        problem.model,
        *problem.args,
        title=problem.title,
        target=options.target,
        level=options.level,
        trials=options.trials,
        minutes=options.minutes,
        budget_usd=options.budget_usd,
        proposers=options.proposer,
        regions=options.regions,
        seed=options.seed,
        wait=False,
    )
    if not options.json:
        run.log.subscribe(_Progress().show)
    try:
        run.wait()
    except KeyboardInterrupt:
        # What is proven so far is kept: a stopped run still ends with its result.
        run.stop()
        run.wait()
    result = as_json(run.log.events)
    if options.report:
        run.report(options.report)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print(as_text(result, options.report))
    return 0


def as_json(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The run in numbers, from its events alone."""
    from ..notebook.summary import Summary

    summary = Summary(dict(event) for event in events)
    started = summary.started or {}
    return {
        "run": started.get("run"),
        "target": started.get("target"),
        "state": summary.state,
        "message": summary.message,
        "ceiling": started.get("ceiling"),
        "busy": started.get("busy"),
        "step": {key: summary.step[key] for key in _STEP} if summary.step else None,
        "installed": bool(summary.step and summary.step["installed"]),
        "regions": [_region_json(region, summary.nodes) for region in summary.ranked],
        "uncaptured": started.get("uncaptured", []),
        "spent_usd": summary.meter["spent_usd"] if summary.meter else 0.0,
    }


def _region_json(region: Any, nodes: Mapping[int, Any]) -> dict[str, Any]:
    """``status``: faster, slower (judged, none proven faster), or its state when nothing was judged."""
    best = nodes.get(region.best) if region.best is not None else None
    judged = [n for n in region.nodes if n.verdict and n.verdict["status"] in ("faster", "slower")]
    if best is None and judged:
        best = max(judged, key=lambda node: node.speedup or 0.0)
    timing = (best.verdict or {}).get("timing") if best else None
    timing = timing or {}
    return {
        "hash": region.hash,
        "ops": region.info["ops"],
        "count": region.info["count"],
        "share": region.info["share"],
        "ceiling": region.info["ceiling"],
        "status": best.verdict["status"] if best and best.verdict else region.state,
        "reason": region.reason,
        **{key: timing.get(key) for key in ("stock", "stock_us", "kernel_us", "speedup", "low", "high")},
    }


def as_text(result: Mapping[str, Any], report: str | None) -> str:
    """What a person wants to know at the end."""
    lines = [f"ceiling {result['ceiling']:.2f}×" if result["ceiling"] else "nothing was captured"]
    for region in result["regions"]:
        gain = (
            f"{region['speedup']:.2f}× ({region['low']:.2f}–{region['high']:.2f})"
            if region["speedup"]
            else ""
        )
        lines.append(f"  {region['hash']}  {region['share']:6.1%}  {region['status']:10} {gain}")
    step = result["step"]
    if step:
        same = "equal" if step["equal"] else "NOT equal"
        lines.append(
            f"step {step['stock_ms']:.2f} → {step['forged_ms']:.2f} ms: {step['speedup']:.2f}× over "
            f"{step['stock']} (95 % interval {step['low']:.2f}–{step['high']:.2f}), outputs {same}"
        )
    lines.append(f"{result['state']}. {result['message']}".strip())
    if report:
        lines.append(f"report: {Path(report).absolute()}")
    return "\n".join(lines)


class _Progress:
    """Regions as they are decided, on stderr: stdout keeps the result alone."""

    def show(self, event: Mapping[str, Any]) -> None:
        if event["kind"] == "region_state" and event["state"] == "done":
            gain = f": {event['speedup']:.2f}×" if event["speedup"] else ""
            print(f"{event['region']} done{gain} {event['reason']}", file=sys.stderr)
        elif event["kind"] == "log" and event["level"] != "info":
            print(f"{event['level']}: {event['message']}", file=sys.stderr)
        elif event["kind"] == "run_state":
            print(f"{event['state']} {event['message']}".strip(), file=sys.stderr)
