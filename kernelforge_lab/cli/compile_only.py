"""``kernelforge forge --target cuda --arch SM``: every kernel the templates have, compiled and not run."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import targets
from ..exc import CompileError, KernelSourceError
from ..kernels.region import Region
from ..options import matching
from ..proposers.base import Ask
from ..proposers.templates.proposer import TemplatesProposer
from ..targets.base import Target
from .arguments import captured_elsewhere

_SHOWN = ("registers", "shared_bytes", "spill_bytes", "occupancy")


def run(options: argparse.Namespace) -> int:
    """Exit code 1 when one of them does not compile."""
    workload = captured_elsewhere(options)
    target = targets.get(options.target, options.arch)
    regions = [item.region for item in workload.regions if item.eligible]
    words = [word.strip() for word in options.regions.split(",") if word.strip()]
    wanted = matching(words, regions)
    rows = [_region(target, region) for region in regions if not wanted or region.hash in wanted]
    kernels = [kernel for row in rows for kernel in row["kernels"]]
    failed = sum(kernel["status"] != "compiled" for kernel in kernels)
    evidence = f"{len(kernels) - failed} of {len(kernels)} kernels compiled for {options.arch}, not run"
    if options.json:
        print(json.dumps({"arch": options.arch, "evidence": evidence, "regions": rows}, indent=2))
    else:
        print(_text(rows, evidence))
    return int(failed > 0)


def _region(target: Target, region: Region) -> dict[str, Any]:
    proposer = TemplatesProposer()
    kernels = []
    for strategy in proposer.strategies(region, target.name, None):
        kernel = proposer.propose(Ask(region, target.name, strategy))
        if kernel is None:
            continue
        row: dict[str, Any] = {"strategy": strategy, "status": "compiled", "evidence": "", "resources": {}}
        try:
            row["resources"] = dict(target.build(kernel, region).resources)
        except (KernelSourceError, CompileError) as error:
            row |= {"status": "compile_error", "evidence": str(error)}
        kernels.append(row)
    refusal = proposer.refuses(region, target.name)
    return {"hash": region.hash, "title": region.title, "kernels": kernels, "reason": refusal or ""}


def _text(rows: list[dict[str, Any]], evidence: str) -> str:
    lines = []
    for row in rows:
        lines.append(f"{row['hash']}  {row['title']}  {row['reason']}".rstrip())
        for kernel in row["kernels"]:
            uses = ", ".join(f"{n.replace('_', ' ')} {kernel['resources'].get(n, 0):g}" for n in _SHOWN)
            lines.append(f"  {kernel['strategy']:14} {kernel['evidence'] or uses}")
    return "\n".join([*lines, evidence])
