"""``kernelforge forge``: a whole run on a problem file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..problem import load_problem
from . import compile_only
from .arguments import add_arch, add_problem, own_output

if TYPE_CHECKING:
    from ..run import Run


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "forge", help="search faster kernels for a problem, install and measure them"
    )
    add_problem(parser)
    parser.add_argument("--trials", type=int, default=60, help="kernels judged at most (default 60)")
    parser.add_argument("--minutes", type=float, default=5.0, help="time at most (default 5)")
    parser.add_argument("--budget-usd", type=float, help="money at most (default 1 with an LLM, else 0)")
    parser.add_argument("--proposer", default="", help="who writes kernels, comma-separated: templates, llm")
    parser.add_argument("--regions", default="", help="only these: hashes or op names, comma-separated")
    parser.add_argument("--report", metavar="FILE", help="write the report (self-contained HTML) here")
    add_arch(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.arch:
        return compile_only.run(options)
    with own_output():
        run = _run(options)
    print(json.dumps(run.summary(), indent=2) if options.json else as_text(run, options.report))
    return int(run.state == "failed")


def _run(options: argparse.Namespace) -> Run:
    from ..entry import forge

    problem = load_problem(options.problem, seed=options.seed).on(options.target)
    run = forge(
        problem.model,
        *problem.args,
        title=problem.title,
        target=options.target,
        level=options.level,
        trials=options.trials,
        minutes=options.minutes,
        budget_usd=options.budget_usd,
        **({"proposers": options.proposer} if options.proposer else {}),
        regions=options.regions,
        seed=options.seed,
        wait=False,
    )
    if not options.json:
        run.log.subscribe(_Progress().show)
    run.wait()
    if run.is_running:
        # Interrupted: what is proven so far is kept, a stopped run still ends with its result.
        run.stop().wait()
    if options.report:
        run.report(options.report)
    return run


def as_text(run: Run, report: str | Path | None = None) -> str:
    """What a person wants to know at the end."""
    result = run.summary()
    lines = [f"ceiling {result['ceiling']:.2f}×" if result["ceiling"] else "nothing was captured"]
    for region in result["regions"]:
        gain = ""
        if region["speedup"]:
            gain = (
                f"{region['speedup']:.2f}× ({region['low']:.2f}–{region['high']:.2f}) over {region['stock']}"
            )
        lines.append(f"  {region['hash']}  {region['share']:6.1%}  {region['status']:10} {gain}".rstrip())
    step = result["step"]
    if step:
        same = "equal" if step["equal"] else "NOT equal"
        lines.append(
            f"step {step['stock_ms']:.2f} → {step['forged_ms']:.2f} ms: {step['speedup']:.2f}× over "
            f"{step['stock']} (95 % interval {step['low']:.2f}–{step['high']:.2f}), outputs {same}"
        )
    lines.append(f"{run.state} {run.history.message}".strip())
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
