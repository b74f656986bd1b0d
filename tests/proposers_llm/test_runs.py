"""A whole run with a language model in it: fakes for judge and capture, a real endpoint on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab.exc import ProblemError
from kernelforge_lab.judge.job import Job
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.log import EventLog
from kernelforge_lab.options import Options, usual_proposers
from kernelforge_lab.proposers.llm import client
from kernelforge_lab.proposers.llm.proposer import LlmProposer
from kernelforge_lab.proposers.llm.settings import HINT
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store
from tests.search.fakes import FakePool, FakeProposer, item, region, workload

from .asks import KERNEL, KEY, fenced, settings
from .server import Exchange, Script, Server, fail, hang, say


def another() -> Script:
    """A different right kernel with every request."""

    def script(exchange: Exchange) -> None:
        say(fenced(KERNEL.replace("0.f", f"0.f * {exchange.number}")))(exchange)

    return script


def make(
    url: str,
    pool: FakePool | None = None,
    *,
    store: Store | None = None,
    templates: int = 2,
    changes: dict[str, Any] | None = None,
    **options: Any,
) -> Run:
    writers = [
        FakeProposer(strategies=templates, depth=1, tune=False),
        LlmProposer(settings(url, **(changes or {}))),
    ]
    pool = pool or FakePool()
    rooms = Rooms(
        capture=lambda *a, **k: workload(item(region(512))),
        judge=lambda o: pool,
        proposers=lambda o: [w for w in writers if w.name in o.proposers],
        device=lambda o: ("fake cpu", 2),
    )
    given: dict[str, Any] = {
        "trials": 12,
        "proposers": ("templates", "llm"),
        "measure": False,
        "budget_usd": 1.0,
    }
    log = EventLog("t1", store)
    return Run(Options(**(given | options)), log=log, rooms=rooms).start(lambda x: x, (1,))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_BACK_OFF_S", 0.005)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server([another()]) as running:
        yield running


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    return [e for e in run.log.events if e["kind"] == kind]


def test_the_templates_come_first_and_the_model_improves_what_they_found(server: Server) -> None:
    run = make(server.url).wait(60)
    assert run.state == "finished", run.log.events[-1]
    proposers = [e["proposer"] for e in events(run, "node_added") if e["parent"] is not None]
    assert proposers[:2] == ["templates", "templates"] and "llm" in proposers
    nodes = run.history.nodes
    improved = [n for n in nodes.values() if n.proposer == "llm" and n.strategy != "from scratch"]
    assert improved and all(nodes[n.parent or 0].proposer != "stock" for n in improved)
    asked = "\n".join(m["content"] for m in server.requests[0]["messages"])
    assert "aten.relu.default" in asked and "PyTorch eager takes 100 µs" in asked


def test_every_call_is_kept_with_its_node_and_its_price(server: Server, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    run = make(server.url, store=store).wait(60)
    calls = events(run, "model_called")
    assert len(calls) == len(server.requests) > 1
    assert {c["node"] for c in calls} <= set(run.history.nodes)
    assert all(c["usd"] == pytest.approx(0.004) and c["prompt"] and c["reply"] for c in calls)
    assert run.spent_usd == pytest.approx(sum(c["usd"] for c in calls), abs=1e-4)
    kept = [e for e in store.events("t1") if e["kind"] == "model_called"]
    assert kept == calls
    assert (
        store.spent_usd(0.0) == pytest.approx(run.spent_usd, abs=1e-4)
        and store.spent_usd(0.0, besides="t1") == 0
    )
    assert KEY not in json.dumps(store.events("t1")) and KEY not in json.dumps(run.log.events)
    costs = run.costs
    assert list(costs["total_usd"]) == pytest.approx([0.004 * (i + 1) for i in range(len(calls))])
    assert costs["best_step"].is_monotonic_increasing and set(costs["ops"]) == {"relu"}


def test_what_it_may_cost_is_said_before_the_first_call(server: Server) -> None:
    run = make(server.url).wait(60)
    (told,) = [e for e in events(run, "log") if "at most $1.00" in e["message"]]
    assert "ceiling" in told["message"] and "never data or weights" in told["message"]
    assert told["seq"] < events(run, "model_called")[0]["seq"]


def test_without_an_llm_a_line_says_how_to_add_one(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.delenv("KERNELFORGE_LLM_MODEL", raising=False)
    run = make(server.url, proposers=("templates",)).wait(60)
    assert any(HINT in e["message"] for e in events(run, "log")) and server.requests == []


def test_who_writes_kernels_by_default_depends_on_what_was_set_up_for_us() -> None:
    assert usual_proposers({"OPENAI_API_KEY": "sk-0"}) == ("templates",)
    assert usual_proposers({"KERNELFORGE_LLM_MODEL": "m", "OPENAI_API_KEY": "sk-0"}) == ("templates",)
    assert usual_proposers({"KERNELFORGE_LLM_MODEL": "m", "KERNELFORGE_LLM_KEY": "k"}) == ("templates", "llm")
    assert (
        Options(proposers=("templates", "llm")).budget_usd == 1.0
        and Options(proposers=("templates",)).budget_usd == 0
    )
    assert Options(proposers=("llm",), budget_usd=0.25).budget_usd == 0.25


def test_nothing_is_sent_without_a_budget(server: Server) -> None:
    run = make(server.url, budget_usd=0.0).wait(60)
    assert run.state == "finished" and server.requests == []
    assert any("nothing is sent" in e["message"] for e in events(run, "log"))


@pytest.mark.parametrize(
    "script, words",
    [
        (fail(401, "wrong key"), "refused the key"),
        (fail(404, "no such model"), "knows no such model"),
        (fail(429, "quota", "insufficient_quota"), "no balance"),
    ],
    ids=["401", "404", "no balance"],
)
def test_an_endpoint_that_will_never_answer_ends_the_llm_and_not_the_run(script: Script, words: str) -> None:
    with Server([script]) as broken:
        run = make(broken.url, templates=5).wait(60)
        assert run.state == "finished"
        (told,) = [e for e in events(run, "log") if "no more calls of a language model" in e["message"]]
        assert words in told["message"]
        assert len(broken.requests) <= 4, "only those that were under way"
    assert {n.proposer for n in run.history.nodes.values()} == {"stock", "templates"}
    assert run.best() is not None


def test_a_dollar_cap_is_never_passed_even_with_calls_in_flight(server: Server) -> None:
    run = make(server.url, trials=60, budget_usd=0.25, changes={"output_tokens": 5000}).wait(60)
    spent = sum(e["usd"] for e in events(run, "model_called"))
    assert 0 < spent <= 0.25


@pytest.mark.parametrize("script", [hang(), hang(after=2)], ids=["silent", "midway"])
def test_stop_during_a_hanging_call_returns_within_two_seconds(script: Script) -> None:
    with Server([script]) as slow:
        run = make(slow.url)
        assert slow.arrived.wait(30)
        began = time.monotonic()
        run.stop().wait(5)
        assert time.monotonic() - began < 2 and run.state == "stopped"
        while not events(run, "model_called") and time.monotonic() - began < 2:
            time.sleep(0.01)
        assert {e["outcome"] for e in events(run, "model_called")} == {"cancelled"}


class Strict(FakePool):
    """Finds every kernel of a model wrong until it has been repaired ``mercy`` times."""

    mercy = 1

    def verdict(self, job: Job) -> Verdict:
        if job.kernel.proposer != "llm":
            return super().verdict(job)
        if job.kernel.strategy.count("repair") == 0 or f"repair {self.mercy}" not in job.kernel.strategy:
            return Verdict(
                Status.COMPILE_ERROR, "/root/secret/kernel.cpp:4: error: expected ';'", seconds=0.1
            )
        return Verdict(Status.FASTER, timing=Timing(40.0, "compiled", 80.0, 2.0, 1.9, 2.1, 40), seconds=0.1)


@pytest.mark.parametrize("mercy, most", [(1, 2), (9, 3)])
def test_a_wrong_kernel_is_repaired_twice_at_most_with_the_judges_words(
    server: Server, mercy: int, most: int
) -> None:
    pool = Strict()
    pool.mercy = mercy
    run = make(server.url, pool, trials=8).wait(60)
    by_idea = [n for n in run.history.nodes.values() if n.proposer == "llm"]
    repairs = [n for n in by_idea if "repair" in n.strategy]
    assert repairs and {n.strategy.split(" · ")[-1] for n in repairs} == {
        f"repair {i}" for i in range(1, most)
    }
    nodes = run.history.nodes
    assert all("compile_error" in nodes[n.parent or 0].status for n in repairs)
    asked = [r["messages"] for r in server.requests if len(r["messages"]) == 4]
    assert "expected ';'" in asked[0][-1]["content"] and "/root/secret" not in asked[0][-1]["content"]
    assert {n.idea for n in repairs} == {"no branch"}, "what went wrong is no part of the idea"


def test_without_a_key_any_chat_will_do(server: Server) -> None:
    run = make(server.url, proposers=("templates",)).wait(60)
    node = next(n.id for n in run.history.nodes.values() if n.status == "faster")
    text = run.prompt(node, hint="use ``` wisely")
    assert (
        "// forge: target cpu" in text and run.node(node).source.strip() in text and "use ``` wisely" in text
    )
    with pytest.raises(ProblemError, match="no code in it"):
        run.propose("Sorry, no idea.", node)
    child = run.propose(fenced(), node)
    run.wait(60)
    assert (
        run.node(child).parent == node
        and run.node(child).proposer == "human"
        and run.node(child).idea == "no branch"
    )
    assert run.node(child).source == KERNEL and server.requests == []
