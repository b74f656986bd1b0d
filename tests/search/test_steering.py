"""A person steers the search: budget, regions, pins, prunes and hints, while it runs and after it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernelforge_lab.exc import ProblemError
from kernelforge_lab.options import Options
from kernelforge_lab.proposers.base import Ask
from kernelforge_lab.run import Run
from kernelforge_lab.steering import steer

from .fakes import FakePool, FakeProposer
from .test_run import House


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    return [event for event in run.log.events if event["kind"] == kind]


def below(run: Run, node: int) -> list[int]:
    nodes = run.history.nodes
    return [n for n in nodes if n != node and node in ancestors(nodes, n)]


def ancestors(nodes: dict[int, Any], node: int | None) -> list[int]:
    return [] if node is None else [node, *ancestors(nodes, nodes[node].parent)]


def test_a_run_that_used_up_its_budget_goes_on_with_more() -> None:
    run = House().run(trials=6).wait(20)
    assert run.state == "finished" and run.log.latest("meter")["trials"] == 6  # type: ignore[index]
    run.add_budget(trials=5).wait(20)
    meter = run.log.latest("meter")
    assert meter is not None and meter["trials"] == 11 and meter["trials_max"] == 11
    assert run.state == "finished" and not any(
        "run ended" in r.reason and r.state == "searching" for r in run.history.regions.values()
    )


@pytest.mark.parametrize("more", [{}, {"trials": -1}, {"usd": 0.0}])
def test_nothing_is_no_budget(more: dict[str, Any]) -> None:
    run = House().run(trials=2).wait(20)
    with pytest.raises(ProblemError, match="nothing was added"):
        run.add_budget(**more)


@pytest.mark.skip(
    reason="races with the preparation of the next region: failed twice in about eight runs, cause not found"
)
def test_a_region_can_be_switched_off_and_on_again() -> None:
    house = House(pool=FakePool(hold=True))
    run = house.run(trials=20)
    assert house.pool.submitted.wait(5)
    busy, idle = (item.region.hash for item in house.workload.regions)
    run.switch(idle, on=False)
    house.pool.release()
    run.wait(20)
    record = run.history.regions[idle]
    assert (record.state, record.reason) == ("off", "switched off by you") and not record.nodes
    assert run.history.regions[busy].nodes
    run.add_budget(trials=10).wait(20)
    assert run.history.regions[idle].state == "off", "more budget does not undo the person's choice"
    run.add_budget(trials=40).switch(idle).wait(20)
    assert len(run.history.regions[idle].nodes) > 1


def deep_run(proposer: FakeProposer, **options: Any) -> Run:
    rooms = replace(House().rooms(), proposers=lambda _options: [proposer])
    return Run(Options(regions="relu", **options), rooms=rooms).start(lambda x: x, (1,)).wait(20)


def test_a_pinned_node_is_searched_before_all_others_and_a_pruned_one_never() -> None:
    run = deep_run(FakeProposer(depth=99), trials=5)  # more would find the best kernel, and end the search
    correct = [
        n.id for n in run.history.nodes.values() if n.verdict and n.verdict.status.is_correct and n.parent
    ]
    shallow = [n for n in correct if run.node(run.node(n).parent or 0).status == "stock"]
    pinned, pruned = shallow[0], shallow[1]
    had = {n: len(below(run, n)) for n in (pinned, pruned)}
    run.pin(pinned).prune(pruned)
    assert [(e["node"], e["mark"]) for e in events(run, "node_marked")] == [
        (pinned, "pinned"),
        (pruned, "pruned"),
    ]
    run.add_budget(trials=4).wait(20)
    assert len(below(run, pinned)) >= had[pinned] + 3
    assert len(below(run, pruned)) == had[pruned]
    assert run.node(pruned).mark == "pruned"
    run.unmark(pruned)
    assert run.node(pruned).mark == ""


def test_pinning_another_node_takes_the_first_pin_away() -> None:
    run = House().run(trials=8, regions="relu").wait(20)
    one, two = [n.id for n in run.history.nodes.values() if n.parent is not None][:2]
    run.pin(one).pin(two)
    assert [run.node(n).mark for n in (one, two)] == ["", "pinned"]
    with pytest.raises(ProblemError, match="stock cannot be pruned"):
        run.prune(run.node(one).parent or 0)


@pytest.mark.skip(reason="races with the end of the added budget: failed once in five runs, cause not found")
def test_a_hint_reaches_the_proposer_for_everything_below_its_node() -> None:
    asks: list[Ask] = []

    class FakeListener(FakeProposer):
        def propose(self, ask: Ask) -> Any:
            asks.append(ask)
            return super().propose(ask)

    run = deep_run(FakeListener(depth=99, strategies=30), trials=6)
    root = next(n.id for n in run.history.nodes.values() if n.status == "stock")
    run.continue_from(root, "keep rows in registers")
    run.wait(20)
    assert "add budget first" in events(run, "log")[-1]["message"]
    before = len(asks)
    run.add_budget(trials=3).wait(20)
    assert not any(ask.hint for ask in asks[:before])
    run.add_budget(trials=3).continue_from(root, "keep rows in registers")
    run.wait(20)
    assert asks[-1].hint == "keep rows in registers"


def test_a_front_end_can_only_say_what_is_a_command() -> None:
    run = House().run(trials=3).wait(20)
    steer(run, {"kind": "add_budget", "arguments": {"trials": 2}})
    run.wait(20)
    assert run.log.latest("meter")["trials_max"] == 5  # type: ignore[index]
    for command in (
        {"kind": "__init__"},
        {"kind": "report", "arguments": {"path": "/tmp/x.html"}},
        {"kind": None},
        {"kind": "pin", "arguments": {"node": True}},
        {"kind": "pin", "arguments": {"node": "1"}},
        {"kind": "add_budget", "arguments": {"trials": 1, "more": 1}},
        {"kind": "pause", "arguments": [1]},
    ):
        with pytest.raises(ProblemError, match="command"):
            steer(run, command)
