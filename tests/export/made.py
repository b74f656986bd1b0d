"""A finished run without a search: every region of a model has a templates kernel that counts as proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from kernelforge_lab.capture.trace import GraphBackend, through
from kernelforge_lab.events import Event, NodeAdded, NodeJudged, RegionState, RunStarted
from kernelforge_lab.history import History
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer


def regions_of(model: Callable[..., Any], *args: torch.Tensor) -> list[tuple[Region, int]]:
    """Distinct regions of one call with how often each occurs."""
    backend = GraphBackend(lambda split: split.build(lambda _: None))
    with torch.no_grad():
        through(model, backend)(*args)
    (graph,) = backend.graphs
    counted = Counter(step.region.hash for step in graph.steps if step.region is not None)
    return [(region, counted[name]) for name, region in graph.regions.items()]


def kernel_source(region: Region) -> str:
    proposer = TemplatesProposer()
    strategy = proposer.strategies(region, "cpu", None)[0]
    kernel = proposer.propose(Ask(region, "cpu", strategy, threads=2))
    assert kernel is not None
    return kernel.source


def events(
    title: str, regions: list[tuple[Region, int]], sources: dict[str, str] | None = None, target: str = "cpu"
) -> list[Event]:
    infos = [
        {
            "hash": region.hash,
            "title": region.title,
            "text": region.text,
            "ops": [op.short_name for op in region.ops],
            "count": count,
            "time_us": 100.0,
            "share": 0.1,
            "floor_us": 20.0,
            "ceiling": 2.0,
            "eligible": True,
            "reason": "",
            "inputs": [str(spec) for spec in region.inputs],
            "outputs": [str(spec) for spec in region.outputs],
        }
        for region, count in regions
    ]
    roofs = {"bandwidth_gbps": 20.0, "gflops": 100.0}
    found: list[Event] = [
        RunStarted(
            "r-1",
            title,
            target,
            "a device",
            "region",
            0,
            ["templates"],
            {},
            1.0,
            1.0,
            2.0,
            roofs,
            infos,
            [],
            [],
        )
    ]
    verdict = Verdict(Status.FASTER, timing=Timing(50.0, "eager", 100.0, 2.0, 1.9, 2.1, 40)).as_json()
    for node, (region, _) in enumerate(regions, start=1):
        source = (sources or {}).get(region.hash) or kernel_source(region)
        found += [
            NodeAdded(node, region.hash, None, "templates", "first", "", source),
            NodeJudged(node, region.hash, verdict, 1.0),
            RegionState(region.hash, "done", best=node, speedup=2.0, low=1.9, high=2.1),
        ]
    return found


def history(
    title: str, regions: list[tuple[Region, int]], sources: dict[str, str] | None = None, target: str = "cpu"
) -> History:
    return History(event.as_json() for event in events(title, regions, sources, target))
