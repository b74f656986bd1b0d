"""Caps hold while calls are in flight; prices come from the person, then the published table."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.exc import ProblemError
from kernelforge_lab.proposers.llm.models import ModelBandit
from kernelforge_lab.proposers.llm.pricing import Usage, cost_usd
from kernelforge_lab.proposers.llm.proposer import LlmProposer
from kernelforge_lab.proposers.llm.settings import OPENAI_URL, Price, Secret, Settings, from_environment
from kernelforge_lab.proposers.outcome import Outcome
from kernelforge_lab.proposers.purse import Purse, Ticket

from .asks import ask, fenced, proposer
from .server import Server, say

FEE = st.floats(0, 3, allow_nan=False)


@settings(max_examples=200, deadline=None)
@given(FEE, st.lists(st.tuples(st.sampled_from("abc"), FEE, st.floats(0, 1), st.booleans()), max_size=30))
def test_a_cap_is_never_passed_when_calls_cost_what_was_reserved_at_most(
    cap: float, calls: list[tuple[str, float, float, bool]]
) -> None:
    purse = Purse(cap, region_usd=cap / 2, day_usd=cap * 0.9)
    flying: list[tuple[Ticket, float]] = []
    for region, usd, part, waits in calls:
        ticket = purse.reserve(region, usd)
        if isinstance(ticket, Ticket):
            flying.append((ticket, usd * part))
        else:
            assert "does not fit" in ticket
        if flying and not waits:
            purse.settle(*flying.pop(0))
        assert purse.spent_usd + purse.reserved_usd <= 0.9 * cap + 1e-6
    for ticket, usd in flying:
        purse.settle(ticket, usd)
        purse.settle(ticket, usd)
    assert purse.reserved_usd == 0


def test_calls_that_cost_more_than_reserved_pass_the_cap_by_the_calls_in_flight_only() -> None:
    purse = Purse(1.0)
    tickets = [purse.reserve("r", 0.3) for _ in range(5)]
    flying = [t for t in tickets if isinstance(t, Ticket)]
    assert len(flying) == 3
    for ticket in flying:
        purse.settle(ticket, 0.5)
    assert purse.spent_usd == 1.5 and isinstance(purse.reserve("r", 0.01), str)


def test_each_cap_is_named_and_other_runs_of_today_count() -> None:
    assert "the run's $1.00" in str(Purse(1.0).reserve("r", 2.0))
    assert "the region's $0.10" in str(Purse(1.0, region_usd=0.1).reserve("r", 0.2))
    assert "today's $2.00" in str(Purse(1.0, day_usd=2.0, spent_elsewhere=lambda: 1.95).reserve("r", 0.2))


def test_many_threads_never_spend_more_than_the_cap() -> None:
    """The dollar cap of a run against real calls: 8 threads, each reply costs 0.004 of a cap of 0.1."""
    purse = Purse(0.1)
    with Server([say(fenced())]) as server:
        writer = proposer(server.url)

        def work() -> None:
            while writer.propose(ask(purse=purse)).outcome is not Outcome.OVER_BUDGET:
                pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert 0.02 < purse.spent_usd <= 0.1 and purse.reserved_usd == 0
    assert purse.spent_usd == pytest.approx(0.004 * len(server.requests))


def test_the_last_of_a_budget_buys_a_shorter_answer() -> None:
    with Server([say(fenced())]) as server:
        proposer(server.url, output_tokens=20_000).propose(ask(purse=Purse(0.1)))
    assert 2_000 < server.requests[0]["max_tokens"] < 20_000


def test_usage_is_the_servers_own_cached_and_reasoning_tokens_included() -> None:
    usage = {
        "prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 800}, "completion_tokens_details": {"reasoning_tokens": 300},
    }  # fmt: skip
    told: list[Any] = []
    with Server([say(fenced(), usage=usage)]) as server:
        proposer(server.url).propose(ask(on_call=told.append))
    (call,) = told
    assert (call.input_tokens, call.cached_tokens, call.output_tokens, call.reasoning_tokens) == (
        1000,
        800,
        500,
        300,
    )
    assert call.usd == pytest.approx((200 * 2 + 800 * 0.2 + 500 * 10) / 1e6)
    assert call.prompt and call.reply == fenced() and call.seconds > 0 and not call.is_estimate


def test_without_usage_the_cost_is_estimated_and_says_so() -> None:
    told: list[Any] = []
    with Server([say(fenced(), no_usage=True)]) as server:
        proposer(server.url).propose(ask(on_call=told.append))
    assert told[0].is_estimate and told[0].usd > 0


@pytest.mark.parametrize("nonsense", [None, -5, 1e300, "many", [1]])
def test_nonsense_in_usage_breaks_nothing(nonsense: Any) -> None:
    usage = {"prompt_tokens": nonsense, "completion_tokens": 10, "total_tokens": nonsense}
    with Server([say(fenced(), usage=usage)]) as server:
        proposal = proposer(server.url).propose(ask(purse=Purse(1e9)))
    assert proposal.calls[0].usd >= 0


def test_published_prices_are_used_and_the_persons_own_come_first() -> None:
    key = Secret("sk-0123456789")
    public = Settings(("gpt-5",), OPENAI_URL, key=key)
    assert cost_usd(public, "gpt-5", Usage(1_000_000, 0)) == pytest.approx(1.25)
    assert cost_usd(public, "gpt-5", Usage(1_000_000, 0, cached=1_000_000)) == pytest.approx(0.125)
    own = Settings(("gpt-5",), OPENAI_URL, key=key, prices={"gpt-5": Price(1, 2)})
    assert cost_usd(own, "gpt-5", Usage(1_000_000, 1_000_000)) == pytest.approx(3.0)
    assert cost_usd(public, "no-such-model", Usage(10, 10)) is None
    assert cost_usd(Settings(("x",), "http://localhost:8000/v1"), "x", Usage(10, 10)) == 0.0


def test_a_model_without_a_price_is_not_called() -> None:
    settings_ = Settings(("no-such-model",), "https://example.invalid/v1", key=Secret("sk-0123456789"))
    proposal = LlmProposer(settings_).propose(ask())
    assert proposal.outcome is Outcome.NO_PRICE and "KERNELFORGE_LLM_PRICES" in proposal.ends


def test_settings_come_from_the_environment() -> None:
    assert from_environment({}) is None
    assert from_environment({"KERNELFORGE_LLM_MODEL": "gpt-5"}) is None, "no key, no LLM"
    assert from_environment({"OPENAI_API_KEY": "sk-0123456789"}) is None, "no model, no LLM"
    found = from_environment(
        {
            "KERNELFORGE_LLM_MODEL": "a, b",
            "OPENAI_API_KEY": "sk-0123456789",
            "KERNELFORGE_LLM_PRICES": "a=1/2,b=1/0.1/3",
        }
    )
    assert found is not None and found.models == ("a", "b") and found.key.reveal() == "sk-0123456789"
    assert found.prices == {"a": Price(1, 2), "b": Price(1, 3, 0.1)}
    local = from_environment(
        {"KERNELFORGE_LLM_MODEL": "q", "KERNELFORGE_LLM_BASE_URL": "http://localhost:11434/v1"}
    )
    assert local is not None and local.is_local and not local.key


def test_one_hosts_key_is_never_sent_to_another_host() -> None:
    env = {
        "KERNELFORGE_LLM_MODEL": "m",
        "OPENAI_API_KEY": "sk-0123456789",
        "KERNELFORGE_LLM_BASE_URL": "https://example.org/v1",
    }
    assert from_environment(env) is None


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"KERNELFORGE_LLM_BASE_URL": "ftp://x"}, "Give an http"),
        ({"KERNELFORGE_LLM_BASE_URL": "https://me:secret@example.org"}, "holds a password"),
        ({"KERNELFORGE_LLM_BASE_URL": "http://example.org/v1"}, "unencrypted"),
        ({"KERNELFORGE_LLM_API": "grpc"}, "Allowed: chat, responses"),
        ({"KERNELFORGE_LLM_PRICES": "m=cheap"}, "model=input/output"),
        ({"KERNELFORGE_LLM_DAY_USD": "much"}, "Give a number"),
    ],
)
def test_malformed_settings_name_their_variable(changes: dict[str, str], words: str) -> None:
    env = {"KERNELFORGE_LLM_MODEL": "m", "KERNELFORGE_LLM_KEY": "sk-0123456789"} | changes
    with pytest.raises(ProblemError, match=words):
        from_environment(env)


def test_the_model_that_brings_more_per_dollar_is_asked_more_often() -> None:
    bandit = ModelBandit(("dear", "cheap"))
    asked = []
    for _ in range(60):
        model = bandit.choose()
        asked.append(model)
        bandit.paid(model, {"dear": 0.10, "cheap": 0.01}[model])
        bandit.won(model, {"dear": 0.5, "cheap": 0.3}[model])
    assert asked.count("cheap") > 40 and "dear" in asked


def test_ties_between_models_go_to_the_first() -> None:
    assert ModelBandit(("a", "b")).choose() == "a"
