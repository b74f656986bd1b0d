"""What an endpoint may do: every fault is a typed outcome, some are tried again, and Stop ends all."""

from __future__ import annotations

import json
import logging
import pickle
import threading
import time
from typing import Any

import pytest

from kernelforge_lab.proposers.base import Cancel, Proposal
from kernelforge_lab.proposers.llm import client
from kernelforge_lab.proposers.llm.settings import Secret
from kernelforge_lab.proposers.outcome import Outcome
from kernelforge_lab.proposers.purse import Purse

from .asks import KEY, ask, fenced, proposer
from .server import Script, Server, fail, hang, response_end, say, stream

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def _delta(text: str) -> dict[str, Any]:
    return CHUNK | {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


# name -> (what the server does each time, outcome, requests it gets)
FAULTS: dict[str, tuple[Script, Outcome, int]] = {
    "401": (fail(401, "Incorrect API key provided: " + KEY), Outcome.UNAUTHORISED, 1),
    "403": (fail(403, "country not supported"), Outcome.UNAUTHORISED, 1),
    "404 model": (fail(404, "The model `m` does not exist", "model_not_found"), Outcome.NOT_FOUND, 1),
    "404 path": (lambda e: e.status(404, b"<html>nginx</html>"), Outcome.NOT_FOUND, 1),
    "402": (fail(402, "Payment required"), Outcome.NO_BALANCE, 1),
    "429 no balance": (
        fail(429, "You exceeded your current quota", "insufficient_quota"),
        Outcome.NO_BALANCE,
        1,
    ),
    "400 no balance": (fail(400, "Your credit balance is too low"), Outcome.NO_BALANCE, 1),
    "429 rate limit": (fail(429, "slow down", retry_after="0.01"), Outcome.RATE_LIMITED, 3),
    "429 for an hour": (fail(429, "slow down", retry_after="3600"), Outcome.RATE_LIMITED, 1),
    "429 with nonsense": (fail(429, "slow down", retry_after="soon"), Outcome.RATE_LIMITED, 3),
    "500": (fail(500, "oops", retry_after_ms="5"), Outcome.SERVER_ERROR, 3),
    "502 html": (
        lambda e: e.status(502, b"<html>bad gateway</html>", retry_after="0.01"),
        Outcome.SERVER_ERROR,
        3,
    ),
    "503 overloaded": (fail(503, "overloaded", retry_after="0.01"), Outcome.SERVER_ERROR, 3),
    "529": (fail(529, "overloaded", retry_after="0.01"), Outcome.SERVER_ERROR, 3),
    "400": (fail(400, "messages: at least one is required"), Outcome.BAD_REQUEST, 1),
    "422": (fail(422, "extra fields"), Outcome.BAD_REQUEST, 1),
    "400 too long": (
        fail(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        Outcome.CONTEXT_TOO_LONG,
        1,
    ),
    "413": (fail(413, "request too large"), Outcome.CONTEXT_TOO_LONG, 1),
    "400 not json": (lambda e: e.status(400, b"no"), Outcome.BAD_REQUEST, 1),
    "an empty stream": (stream(), Outcome.BAD_RESPONSE, 1),
    "only done": (stream("[DONE]"), Outcome.BAD_RESPONSE, 1),
    "html with 200": (lambda e: e.status(200, b"<html>welcome</html>"), Outcome.BAD_RESPONSE, 1),
    "json with 200": (lambda e: e.status(200, {"choices": []}), Outcome.BAD_RESPONSE, 1),
    "a broken event": (stream("{not json"), Outcome.BAD_RESPONSE, 1),
    "an event that is a list": (stream([1, 2]), Outcome.BAD_RESPONSE, 1),
    "an event that is a number": (stream("7"), Outcome.BAD_RESPONSE, 1),
    "choices that are no list": (stream(CHUNK | {"choices": 3}), Outcome.BAD_RESPONSE, 1),
    "bytes that are no text": (stream(b"data: \xff\xfe\n\n"), Outcome.BAD_RESPONSE, 1),
    "an error inside the stream": (
        stream(_delta("Idea"), {"error": {"message": "engine died", "type": "server_error"}}),
        Outcome.SERVER_ERROR,
        1,
    ),
    "no balance inside the stream": (
        stream({"error": {"message": "insufficient credits", "type": "billing"}}),
        Outcome.NO_BALANCE,
        1,
    ),
    "a disconnect before the answer": (lambda e: None, Outcome.DISCONNECTED, 3),
    "a disconnect in the answer": (stream(_delta("Idea: ")), Outcome.DISCONNECTED, 1),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_BACK_OFF_S", 0.005)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_its_outcome(name: str) -> None:
    script, outcome, requests = FAULTS[name]
    with Server([script]) as server:
        proposal = proposer(server.url).propose(ask())
    assert proposal.outcome is outcome, proposal.reason
    assert proposal.kernel is None and proposal.reason
    assert len(server.requests) == requests
    assert bool(proposal.ends) == outcome.ends_the_llm


@pytest.mark.parametrize(
    "events, outcome",
    [
        ([response_end({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, error="boom")], Outcome.SERVER_ERROR),
        ([{"type": "error", "message": "billing hard limit", "code": "x", "param": None, "sequence_number": 1}], Outcome.NO_BALANCE),
        ([{"type": "response.unheard_of"}], Outcome.BAD_RESPONSE),
    ],
)  # fmt: skip
def test_faults_of_the_responses_api(events: list[Any], outcome: Outcome) -> None:
    with Server([stream(*events)]) as server:
        assert proposer(server.url, api="responses").propose(ask()).outcome is outcome


def test_a_refusal_of_the_responses_api_is_one() -> None:
    refusal = {
        "type": "response.refusal.delta", "delta": "I won't.", "content_index": 0, "item_id": "i",
        "output_index": 0, "sequence_number": 1,
    }  # fmt: skip
    end = response_end({"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18})
    with Server([stream(refusal, end)]) as server:
        proposal = proposer(server.url, api="responses").propose(ask())
    assert (proposal.outcome, proposal.reason) == (Outcome.REFUSED, "I won't.")


def test_nobody_listening_is_a_disconnect() -> None:
    with Server([hang()]) as server:
        url = server.url
    assert proposer(url).propose(ask()).outcome is Outcome.DISCONNECTED


def test_a_fault_that_passes_costs_only_time() -> None:
    scripts = [fail(503, retry_after="0.01"), fail(429, retry_after="0.01"), say(fenced())]
    with Server(scripts) as server:
        proposal = proposer(server.url).propose(ask())
    assert proposal.outcome is Outcome.KERNEL and len(proposal.calls) == 1
    assert proposal.usd == pytest.approx((1000 * 2 + 200 * 10) / 1e6)


def test_a_parameter_that_a_server_does_not_know_is_left_out_from_then_on() -> None:
    scripts = [fail(400, "Unknown parameter: 'stream_options'"), say(fenced(), no_usage=True)]
    with Server(scripts) as server:
        writer = proposer(server.url)
        assert writer.propose(ask()).outcome is Outcome.KERNEL
        assert writer.propose(ask()).outcome is Outcome.KERNEL
    assert ["stream_options" in r for r in server.requests] == [True, False, False]


def test_an_endpoint_that_falls_silent_is_given_up() -> None:
    with Server([hang(after=2)]) as server:
        proposal = proposer(server.url, idle_s=0.3).propose(ask())
    assert proposal.outcome is Outcome.TIMED_OUT
    assert proposal.calls[0].is_estimate and proposal.usd > 0, "what was streamed is paid for"


def test_a_reply_that_takes_too_long_is_given_up() -> None:
    def drip(exchange: Any) -> None:
        exchange.open_stream()
        for _ in range(200):
            exchange.chunk({"content": "."})
            time.sleep(0.02)

    with Server([drip]) as server:
        assert proposer(server.url, timeout_s=0.4).propose(ask()).outcome is Outcome.TIMED_OUT


@pytest.mark.parametrize("script", [hang(), hang(after=3), fail(429, retry_after="50")], ids=["silent", "midway", "back-off"])  # fmt: skip
def test_stop_ends_a_call_wherever_it_waits(script: Script) -> None:
    cancel, answers = Cancel(), []
    with Server([script]) as server:
        question = ask(cancel=cancel)
        thread = threading.Thread(target=lambda: answers.append(proposer(server.url).propose(question)))
        thread.start()
        assert server.arrived.wait(10)
        time.sleep(0.1)
        cancel.set()
        thread.join(2)
        assert not thread.is_alive()
    (proposal,) = answers
    assert isinstance(proposal, Proposal) and proposal.outcome is Outcome.CANCELLED
    assert question.purse is not None and question.purse.reserved_usd == 0


def test_nothing_is_sent_after_stop_or_without_a_purse() -> None:
    cancel = Cancel()
    cancel.set()
    with Server([say(fenced())]) as server:
        writer = proposer(server.url)
        assert writer.propose(ask(cancel=cancel)).outcome is Outcome.CANCELLED
        assert writer.propose(ask(purse=None)).outcome is Outcome.OVER_BUDGET
        assert writer.propose(ask(purse=Purse(0.0))).outcome is Outcome.OVER_BUDGET
    assert server.requests == []


def test_the_key_goes_into_one_header_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[Any] = []
    with Server([fail(401, f"Incorrect API key provided: {KEY}")]) as server:
        writer = proposer(server.url)
        proposal = writer.propose(ask(on_call=told.append))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    seen = [
        repr(proposal),
        repr(told),
        repr(writer),
        repr(writer.settings),
        json.dumps(server.requests),
        caplog.text,
    ]
    assert not any(KEY in text for text in seen)
    assert "[key]" in proposal.reason
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(Secret(KEY))


def test_a_call_works_where_a_loop_is_already_running() -> None:
    """A notebook's cells run inside the kernel's own event loop."""
    import asyncio

    from kernelforge_lab.proposers.llm.client import Reply, _apart

    async def answer() -> Reply:
        return Reply(text="here")

    async def cell() -> Reply:
        return _apart(answer())

    assert asyncio.run(cell()).text == "here"
