"""The agent: finds, proves, stops when told, never loses what it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kernelforge_lab.capture.workload import Roofs, WorkloadRegion
from kernelforge_lab.events import Event, StepMeasured
from kernelforge_lab.judge.job import Job
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.log import EventLog
from kernelforge_lab.proposers.human import HumanProposer, Submission
from kernelforge_lab.proposers.replay import ReplayProposer
from kernelforge_lab.search.agent import Agent
from kernelforge_lab.search.budget import Budget, Ledger
from kernelforge_lab.search.forest import Forest

from .fakes import FakePool, FakeProposer, item, region


def make(
    pool: FakePool,
    *,
    items: list[WorkloadRegion] | None = None,
    trials: int = 30,
    seconds: float = 60.0,
    proposers: list[Any] | None = None,
    seed: int = 0,
    unit: float = 1.0,
    **more: Any,
) -> tuple[Agent, EventLog]:
    items = items or [
        item(region(512), 0.4, time_us=100 * unit, floor_us=20 * unit),
        item(region(256), 0.2, time_us=100 * unit, floor_us=20 * unit),
    ]
    log = EventLog("test")
    wanted = more.pop("wanted", None)
    forest = Forest(
        items,
        proposers or [FakeProposer()],
        "cpu",
        roofs=Roofs(20.0 / unit, 100.0 / unit),
        seed=seed,
        wanted=wanted,
    )
    return Agent(forest, pool, Ledger(Budget(trials, seconds)), log.emit, **more), log


def finish(agent: Agent) -> None:
    agent.start()
    assert agent.done.wait(20)


def of(log: EventLog, kind: str) -> list[dict[str, Any]]:
    return [event for event in log.events if event["kind"] == kind]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.005)


def comparable(log: EventLog) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key not in ("seq", "at_s")}
        for event in log.events
        if event["kind"] != "meter"
    ]


def test_a_run_spends_its_trials_and_ends_with_proven_winners() -> None:
    pool = FakePool()
    agent, log = make(pool)
    finish(agent)
    states = [event["state"] for event in of(log, "run_state")]
    assert states == ["running", "finished"]
    assert agent.ledger.trials <= 30
    assert set(agent.bench.proven) == set(agent.forest.regions)
    proofs = [job for job in pool.jobs if job.finalist]
    for kernel, verdict in agent.bench.proven.values():
        assert verdict.status is Status.FASTER
        assert kernel in [job.kernel for job in proofs]
    assert all(job.best_us is None for job in proofs)


def test_every_verdict_belongs_to_a_node_told_before() -> None:
    agent, log = make(FakePool())
    finish(agent)
    known: set[int] = set()
    for event in log.events:
        if event["kind"] == "node_added":
            assert event["parent"] is None or event["parent"] in known
            known.add(event["node"])
        if event["kind"] == "node_judged":
            assert event["node"] in known
    assert {e["node"] for e in of(log, "node_judged")} == known


def test_only_the_number_from_a_fresh_process_is_reported() -> None:
    agent, log = make(FakePool(flattering=True))
    finish(agent)
    assert not agent.bench.proven
    last = {event["region"]: event for event in of(log, "region_state")}
    for event in last.values():
        assert event["state"] == "done" and event["speedup"] is None and event["best"] is None
        assert "fresh process" in event["reason"]


def test_a_run_replays_exactly() -> None:
    agent, log = make(FakePool(), seed=3)
    finish(agent)
    again, second = make(FakePool(), seed=3)
    finish(again)
    assert comparable(second) == comparable(log)
    replay = ReplayProposer(log.events, "templates", FakeProposer())
    played, third = make(FakePool(), seed=3, proposers=[replay])
    finish(played)
    assert comparable(third) == comparable(log)


def test_the_time_unit_changes_no_choice() -> None:
    agent, log = make(FakePool())
    finish(agent)
    scaled, other = make(FakePool(unit=1000.0), unit=1000.0)
    finish(scaled)
    shape = [(e["node"], e["region"], e["parent"], e["source"], e["params"]) for e in of(log, "node_added")]
    assert shape == [
        (e["node"], e["region"], e["parent"], e["source"], e["params"]) for e in of(other, "node_added")
    ]


def test_parameters_are_raced_quickly_and_the_winner_judged_in_full() -> None:
    pool = FakePool()
    agent, log = make(pool)
    finish(agent)
    tuned = [event for event in of(log, "node_added") if event["strategy"] == "tune"]
    assert tuned and all(event["params"]["BLOCK"] in (16, 32, 64) for event in tuned)
    quick = [job for job in pool.jobs if job.quick]
    assert quick
    full = {job.kernel.hash for job in pool.jobs if not job.quick and not job.finalist}
    assert len(full) == agent.ledger.trials


def test_equal_sources_are_judged_once() -> None:
    class Parrot(FakeProposer):
        def propose(self, ask: Any) -> Any:
            kernel = super().propose(ask)
            return kernel and type(kernel)(
                f"// {ask.strategy}\n// forge: target cpu\n// forge: launch f args=(in0, out0)\nint x;",
                kernel.region,
                kernel.target,
                proposer="templates",
                strategy=ask.strategy,
            )

    pool = FakePool()
    agent, log = make(pool, proposers=[Parrot()], items=[item(region(512))])
    finish(agent)
    assert agent.ledger.trials == 1
    statuses = [event["verdict"]["status"] for event in of(log, "node_judged")]
    assert statuses.count("duplicate") == 4
    twins = [e for e in of(log, "node_judged") if e["verdict"]["status"] == "duplicate"]
    assert all("the same kernel as node 2" in twin["verdict"]["evidence"] for twin in twins)


def test_a_duplicate_that_the_judge_sees_counts_as_its_twin() -> None:
    class Seeing(FakePool):
        def verdict(self, job: Job) -> Verdict:
            code = "one code for all"
            if len(self.jobs) > 1 and not job.finalist:
                return Verdict(Status.DUPLICATE, "the same machine code", binary_hash=code)
            timing = Timing(40.0, "compiled", 80.0, 2.0, 1.9, 2.1, 40)
            return Verdict(Status.FASTER, "", {"random": 9}, 0.1, timing, binary_hash=code)

    agent, log = make(Seeing(), items=[item(region(512))], proposers=[FakeProposer(tune=False)])
    finish(agent)
    judged = of(log, "node_judged")[1:]
    assert len({event["reward"] for event in judged}) == 1
    assert "node 2 (faster)" in judged[1]["verdict"]["evidence"]
    ((_, verdict),) = agent.bench.proven.values()
    assert verdict.timing is not None and verdict.timing.speedup == 2.0


def test_stop_abandons_a_judgement_under_way() -> None:
    pool = FakePool(hold=True)
    agent, log = make(pool)
    agent.start()
    assert pool.submitted.wait(10)
    agent.stop()
    assert agent.done.wait(5)
    assert pool.waiting, "the judgement was still under way"
    assert of(log, "run_state")[-1]["state"] == "stopped"
    assert all(e["reason"] for e in of(log, "region_state")[-2:])


def test_after_a_stop_the_best_so_far_can_still_be_proven_and_the_search_go_on() -> None:
    pool = FakePool()
    agent, log = make(pool, trials=200)
    seen: list[dict[str, Any]] = []

    def stop_at_first_gain(event: dict[str, Any]) -> None:
        if event["kind"] == "region_state" and event["speedup"] and not seen:
            seen.append(event)
            agent.stop()

    log.subscribe(stop_at_first_gain)
    finish(agent)
    assert not agent.bench.proven and seen
    agent.start(search=False)
    assert agent.done.wait(10)
    assert list(agent.bench.proven) == [seen[0]["region"]]


def test_pause_holds_the_work_and_the_clock_and_resume_goes_on() -> None:
    pool = FakePool(hold=True)
    agent, log = make(pool)
    agent.start()
    assert pool.submitted.wait(10)
    agent.pause()
    until(lambda: of(log, "run_state")[-1]["state"] == "paused")
    asked, elapsed = len(pool.jobs), agent.ledger.elapsed_s
    pool.release()
    time.sleep(0.05)
    assert len(pool.jobs) == asked and agent.ledger.elapsed_s == elapsed
    agent.resume()
    assert agent.done.wait(20)
    states = [event["state"] for event in of(log, "run_state")]
    assert states == ["running", "paused", "running", "finished"]


def test_a_time_cap_ends_the_search_and_says_so() -> None:
    agent, log = make(FakePool(), trials=10_000, seconds=1e-6)
    finish(agent)
    assert not of(log, "node_added")
    assert all("the time of 1e-06 s is used" in e["reason"] for e in of(log, "region_state")[-2:])


def test_a_failing_judge_fails_the_run_with_a_message_and_keeps_what_was_found() -> None:
    agent, log = make(FakePool(broken=True))
    finish(agent)
    last = of(log, "run_state")[-1]
    assert last["state"] == "failed" and "lost its mind" in last["message"]


def test_a_raising_proposer_costs_only_its_own_turn() -> None:
    class Moody(FakeProposer):
        def propose(self, ask: Any) -> Any:
            if ask.strategy == "s1":
                raise ValueError("not today")
            return super().propose(ask)

    agent, log = make(FakePool(), proposers=[Moody()])
    finish(agent)
    assert agent.bench.proven
    assert any("not today" in event["message"] for event in of(log, "log"))


def test_regions_that_cannot_or_need_not_be_searched_say_why() -> None:
    items = [
        item(region(512), 0.4),
        item(region(256, "sort"), 0.2),
        item(region(256, "bernoulli"), 0.2, eligible=False, reason="random op"),
        item(region(300), 0.002),
        item(region(301), 0.2, time_us=21.0),
    ]
    agent, log = make(FakePool(), items=items)
    finish(agent)
    last = {event["region"]: (event["state"], event["reason"]) for event in of(log, "region_state")}
    found = [last[entry.region.hash] for entry in items]
    assert found[0][0] == "done"
    assert found[1] == ("ineligible", "this fake does not write sort")
    assert found[2] == ("ineligible", "random op")
    assert found[3][0] == "off" and "of the step is left to gain" in found[3][1]
    assert found[4][0] == "off" and "limit of the machine" in found[4][1]


def test_a_region_asked_for_is_tried_however_small() -> None:
    small = item(region(300), 0.002)
    agent, log = make(
        FakePool(), items=[item(region(512), 0.4), small], wanted=frozenset({small.region.hash})
    )
    finish(agent)
    assert {event["region"] for event in of(log, "node_added")} == {small.region.hash}


def test_budget_goes_where_it_pays() -> None:
    pool = FakePool()
    items = [item(region(512), 0.02), item(region(256), 0.6)]
    agent, log = make(pool, items=items, trials=12)
    finish(agent)
    counts = [sum(e["region"] == entry.region.hash for e in of(log, "node_added")) for entry in items]
    assert counts[1] > counts[0]
    assert pool.prepared[0] == items[1].region.hash


def test_a_persons_kernel_is_judged_first_and_also_after_the_end() -> None:
    pool = FakePool()
    agent, log = make(pool, human=(human := HumanProposer()))
    place = next(iter(agent.forest.regions))
    node = agent.forest.new_id()
    human.offer(Submission(node, place, "// forge: target cpu\nmine"))
    finish(agent)
    mine = [event for event in of(log, "node_added") if event["node"] == node]
    assert mine[0]["proposer"] == "human" and pool.jobs[0].kernel.source.endswith("mine")
    late = agent.forest.new_id()
    human.offer(Submission(late, place, "// forge: target cpu\nlate", parent=node))
    agent.start(search=False)
    assert agent.done.wait(10)
    assert [e["parent"] for e in of(log, "node_added") if e["node"] == late] == [node]
    assert late in {event["node"] for event in of(log, "node_judged")}


def test_the_step_is_measured_with_the_proven_winners() -> None:
    given: list[Any] = []

    def measure(proven: Any) -> Event:
        given.append(dict(proven))
        return StepMeasured("eager", 10.0, 5.0, 2.0, 1.9, 2.1, 0.3, True, True, message="2× faster")

    agent, log = make(FakePool(), finish=measure)
    finish(agent)
    assert given == [agent.bench.proven]
    assert of(log, "step_measured")[0]["speedup"] == 2.0
    assert [e["state"] for e in of(log, "run_state")] == ["running", "measuring", "finished"]
    assert of(log, "run_state")[-1]["message"] == "2× faster"


def test_a_model_that_cannot_be_measured_does_not_cost_the_winners() -> None:
    def broken(proven: Any) -> Event:
        raise ValueError("out of memory")

    agent, log = make(FakePool(), finish=broken)
    finish(agent)
    last = of(log, "run_state")[-1]
    assert last["state"] == "finished" and "could not be measured: out of memory" in last["message"]
    assert agent.bench.proven


def test_parameters_are_written_out_in_every_node() -> None:
    agent, log = make(FakePool())
    finish(agent)
    proposed = [e for e in of(log, "node_added") if e["parent"] is not None and e["strategy"] != "tune"]
    assert proposed and all(event["params"] == {"BLOCK": 8} for event in proposed)


def test_parallel_places_are_filled_without_trying_anything_twice() -> None:
    agent, log = make(FakePool(), parallel=4)
    finish(agent)
    moves = [(e["parent"], e["strategy"]) for e in of(log, "node_added") if e["parent"] is not None]
    assert len(moves) == len(set(moves)) and agent.bench.proven


@pytest.mark.parametrize("trials", [0, 1, 7])
def test_never_more_trials_than_allowed(trials: int) -> None:
    agent, _ = make(FakePool(), trials=trials, parallel=3)
    finish(agent)
    assert agent.ledger.trials <= trials
