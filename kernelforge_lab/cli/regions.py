"""``kernelforge regions``: what a problem is made of, and a skeleton to write a kernel from."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from ..capture import Workload, WorkloadRegion
from ..kernels.skeleton import skeleton
from .arguments import add_problem, captured, the_region


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("regions", help="list the regions of a problem")
    add_problem(parser)
    parser.add_argument(
        "--skeleton", metavar="HASH", help="print a kernel to start from for this region (- for the only one)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    _, workload = captured(options)
    if options.skeleton:
        wish = None if options.skeleton == "-" else options.skeleton
        print(skeleton(the_region(workload, wish).region, options.target), end="")
    elif options.json:
        print(json.dumps(as_json(workload, options.target), indent=2))
    else:
        print(as_text(workload))
    return 0


def as_json(workload: Workload, target: str) -> dict[str, Any]:
    return {
        "title": workload.title,
        "target": workload.target,
        "level": workload.level,
        "step_ms": workload.step_ms,
        "busy": workload.busy,
        "ceiling": workload.ceiling,
        "advice": workload.advice,
        "regions": [_region_json(item, target) for item in workload.regions],
        "vendor": [asdict(op) for op in workload.vendor],
        "uncaptured": list(workload.uncaptured),
    }


def _region_json(item: WorkloadRegion, target: str) -> dict[str, Any]:
    region = item.region
    named = item.as_json()
    named["inputs"] = dict(zip(region.input_names, map(str, region.inputs), strict=True))
    named["outputs"] = dict(zip(region.output_names, map(str, region.outputs), strict=True))
    return {**named, "skeleton": skeleton(region, target)}


def as_text(workload: Workload) -> str:
    facts = f"{workload.step_ms:.2f} ms a step, {workload.busy:.0%} of it in operators"
    lines = [f"{workload.title}: {facts}, ceiling {workload.ceiling:.2f}×"]
    if workload.advice:
        lines.append(workload.advice)
    for item in workload.regions:
        lines += ["", *_region_lines(item)]
    lines += [f"library: {op.name}  ×{op.count}  {op.share:.1%} of the step" for op in workload.vendor]
    lines += [f"left to PyTorch: {reason}" for reason in workload.uncaptured]
    return "\n".join(lines)


def _region_lines(item: WorkloadRegion) -> list[str]:
    region = item.region
    state = "" if item.eligible else f"  not eligible: {item.reason}"
    cost = f"{item.time_us:.1f} µs each, {item.share:.1%} of the step, ceiling {item.ceiling:.2f}×"
    names = (*region.input_names, *region.output_names)
    specs = (*region.inputs, *region.outputs)
    return [
        f"{region.hash}  {region.title}  ×{item.count}  {cost}{state}",
        *(f"  {name}: {spec}" for name, spec in zip(names, specs, strict=True)),
    ]
