"""A stored run goes on where it stood, in another process and with other proposers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab.entry import load
from kernelforge_lab.events import ModelCalled
from kernelforge_lab.exc import ForgeError, ProblemError, StoreError
from kernelforge_lab.log import EventLog
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store, owner
from tests.scale.fakes import model, new_run, rooms
from tests.search.fakes import FakePool, FakeProposer

LIMIT_S = 20


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    return Store()


def stopped(store: Store, at: int = 6) -> Run:
    run = new_run("r1", store, FakePool(), trials=30)
    run.log.subscribe(lambda event: event["kind"] == "node_judged" and event["node"] == at and run.stop())
    return run.start(model, (1,)).wait(LIMIT_S)


def again(store: Store, **more: Any) -> Run:
    events = store.events("r1")
    return Run(log=EventLog.of_past("r1", events), rooms=replace(rooms(FakePool()), **more))


def test_it_goes_on_in_another_notebook_with_its_budget_and_seed(store: Store) -> None:
    before = stopped(store)
    run = again(store)
    assert not run.is_steerable
    run.resume(model, (1,)).wait(LIMIT_S)
    assert run.state == "finished" and run.apply() == "the forged model"
    assert (run.options.trials, run.options.seed, run.options.target) == (30, 0, "cpu")
    events = store.events("r1")
    assert events[: len(before.log.events)] == before.log.events and events == run.log.events
    nodes = [e["node"] for e in events if e["kind"] == "node_added"]
    assert len(nodes) == len(set(nodes)) > len(before.history.nodes)


def test_without_the_model_the_search_ends_without_a_step(store: Store) -> None:
    stopped(store)
    run = again(store).resume().wait(LIMIT_S)
    assert run.state == "finished" and len(run.history.winners()) == 2
    assert run.log.latest("step_measured") is None
    with pytest.raises(ForgeError, match="its model is not here"):
        run.apply()


def test_other_proposers_go_on_with_what_was_written(store: Store) -> None:
    stopped(store)

    class FakeOther(FakeProposer):
        name = "other"

    run = again(store, proposers=lambda options: [FakeOther()]).resume(model, (1,)).wait(LIMIT_S)
    assert {n.proposer for n in run.history.nodes.values()} == {"stock", "templates", "other"}


def test_what_models_were_paid_stays_paid_at_the_prices_of_then(store: Store) -> None:
    before = stopped(store)
    region = next(iter(before.history.regions))
    before.log.emit(ModelCalled(None, region, None, "m", "p", "r", 9, 0, 9, 0.125, 1.0))
    run = again(store).resume(model, (1,)).wait(LIMIT_S)
    assert run._running_agent.ledger.purse.spent_usd == 0.125
    assert (run.log.latest("meter") or {})["spent_usd"] == 0.125


def test_a_finished_run_with_more_budget_goes_on(store: Store) -> None:
    new_run("r1", store, FakePool(), trials=4).start(model, (1,)).wait(LIMIT_S)
    run = again(store).resume(model, (1,)).wait(LIMIT_S)
    judged = len(run.history.nodes)
    run.add_budget(trials=8).wait(LIMIT_S)
    assert len(run.history.nodes) > judged and run.state == "finished"


def test_a_run_at_work_elsewhere_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run("r1", store, pool := FakePool(hold=True))
    run.start(model, (1,))
    assert pool.submitted.wait(10)
    real = owner.me()
    monkeypatch.setattr(owner, "me", lambda: real.replace(f"/{os.getpid()}/", "/1/"))
    with pytest.raises(StoreError, match="at work in another process"):
        again(store).resume(model, (1,))
    monkeypatch.undo()
    run.stop().wait(LIMIT_S)


def test_who_lost_a_run_to_another_process_is_told_and_keeps_its_results(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(store)
    monkeypatch.setattr(owner, "me", lambda: "another/1/1.0")
    Store().claim("r1")
    monkeypatch.undo()
    monkeypatch.setenv("KERNELFORGE_STORE", store.url)
    run.resume().wait(LIMIT_S)
    assert run.state == "finished" and not run.log.is_kept
    warnings = [e["message"] for e in run.log.events if e["kind"] == "log" and e["level"] == "warning"]
    assert any("Another process goes on with this run" in text for text in warnings)


def test_a_run_of_an_older_version_says_why_it_cannot_go_on(store: Store) -> None:
    run = stopped(store)
    events = run.log.events
    for event in events:
        if event["kind"] == "run_started":
            event["regions"] = [{k: v for k, v in r.items() if k != "stats"} for r in event["regions"]]
    old = Run(log=EventLog.of_past("r1", events), rooms=rooms(FakePool()))
    with pytest.raises(ProblemError, match="use forge"):
        old.resume()


def test_load_then_resume_is_the_way_of_a_notebook(store: Store) -> None:
    stopped(store)
    run = load("r1")
    run._rooms = rooms(FakePool())
    assert run.resume(model, (1,)).wait(LIMIT_S).state == "finished"
