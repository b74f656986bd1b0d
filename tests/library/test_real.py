"""With the real judge on this machine: its process is killed at work, and the next run starts from the proof."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.judge.verdict import Status
from kernelforge_lab.library import open_library
from kernelforge_lab.options import Options
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run


@pytest.mark.slow
def test_a_killed_checker_costs_nothing_and_a_known_kernel_is_proven_before_any_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    pools: list[JudgePool] = []

    def judge(options: Options) -> JudgePool:
        pools.append(JudgePool(options.target))
        return pools[-1]

    def step(x: Any, gain: Any) -> Any:
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain
        return torch.nn.functional.gelu(scaled) * torch.sigmoid(scaled)

    def forge() -> Run:
        # A region asked for by name is tried whatever a busy machine makes of its roofline.
        options = Options(trials=1, target="cpu", minutes=3, measure=False, regions=("gelu",))
        return Run(options, rooms=Rooms(judge=judge))

    inputs = (torch.randn(512, 1024), torch.randn(1024))
    killed: list[int] = []

    def kill_once(event: dict[str, Any]) -> None:
        if event["kind"] == "node_added" and event["parent"] is not None and not killed:
            killed.append(pools[-1]._worker._process.pid)
            os.kill(killed[0], signal.SIGKILL)

    first = forge()
    first.log.subscribe(kill_once)
    with torch.no_grad():
        first.start(step, inputs).wait(200)
    assert first.state == "finished" and killed, first.history.message
    (node,) = [node for node in first.history.nodes.values() if node.status != "stock"]
    assert node.verdict is not None and node.verdict.status.is_correct, node.line()

    # Whether it is faster depends on who else uses this machine; that it was proven so is given here.
    region = first.history.region(first.history.find(None))
    faster = replace(node.verdict, status=Status.FASTER)
    memory = open_library("cpu", "first")
    assert memory is not None
    memory.remember(region, node.kernel("cpu"), faster)
    second = forge()
    with torch.no_grad():
        second.start(step, inputs).wait(200)
    known = next(n for n in second.history.nodes.values() if n.status != "stock")
    assert (known.proposer, known.source, known.params) == ("library", node.source, node.params)
    assert known.verdict and known.verdict.status.is_correct and known.verdict.check_count > 0, known.line()
    trials = (second.log.latest("meter") or {})["trials"]
    is_used = known.verdict.status is Status.FASTER
    assert (trials == 0) == is_used and bool(second.history.winners()) >= is_used
