"""An ask and its answers as JSON, so that what was said can be read, replayed and published."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ...judge.verdict import Verdict
from ...kernels.kernel import Kernel
from ...kernels.region import Region
from ..base import Ask, Cancel, Facts, Messages
from ..outcome import Outcome
from . import prompt
from .client import Reply
from .pricing import Usage, tokens_of
from .prompt import Machine

Json = dict[str, Any]


def ask_as_json(ask: Ask, machine: Machine) -> Json:
    """Everything a prompt is made from (``said`` of a repair is not part of it)."""
    return {
        "region": ask.region.text,
        "target": ask.target,
        "strategy": ask.strategy,
        "threads": ask.threads,
        "hint": ask.hint,
        "facts": asdict(ask.facts),
        "machine": asdict(machine),
        "parent": _kernel_json(ask.parent, ask.parent_verdict) if ask.parent else None,
        "siblings": [_kernel_json(kernel, verdict) for kernel, verdict in ask.siblings],
    }


def ask_from_json(data: Json) -> tuple[Ask, Machine]:
    """Inverse of ``ask_as_json``."""
    region = Region.parse(data["region"])
    target = data["target"]
    facts = Facts(**{**data["facts"], "stocks_us": tuple(tuple(s) for s in data["facts"]["stocks_us"])})
    machine = Machine(**{**data["machine"], "features": tuple(data["machine"]["features"])})
    parent, verdict = _kernel(data["parent"], region, target) if data["parent"] else (None, None)
    siblings = tuple(_kernel(s, region, target) for s in data["siblings"])
    ask = Ask(
        region,
        target,
        data["strategy"],
        parent,
        verdict,
        siblings,
        hint=data["hint"],
        threads=data["threads"],
        facts=facts,
    )
    return ask, machine


class ReplayEndpoint:
    """Answers with recorded replies, in order; an ask that says anything else than was said has no answer."""

    def __init__(self, turns: list[tuple[str, str]]) -> None:
        self._turns = list(turns)

    def complete(self, model: str, messages: Messages, tokens: int, cancel: Cancel) -> Reply:  # noqa: ARG002
        said = prompt.as_text(messages)
        if not self._turns:
            return Reply(outcome=Outcome.BAD_RESPONSE, reason="the transcript has no further reply")
        recorded, reply = self._turns.pop(0)
        if recorded != said:
            return Reply(outcome=Outcome.BAD_RESPONSE, reason="the prompt differs from the recorded one")
        return Reply(reply, "stop", usage=Usage(tokens_of(said), tokens_of(reply), is_estimate=True))


def _kernel_json(kernel: Kernel, verdict: Verdict | None) -> Json:
    return {
        "source": kernel.source,
        "params": dict(kernel.params),
        "proposer": kernel.proposer,
        "strategy": kernel.strategy,
        "idea": kernel.idea,
        "verdict": replace(verdict, checks={}, binary_hash="").as_json() if verdict else None,
    }


def _kernel(data: Json, region: Region, target: str) -> tuple[Kernel, Verdict | None]:
    params = tuple(sorted(data["params"].items()))
    kernel = Kernel(
        data["source"], region.hash, target, params, data["proposer"], data["strategy"], data["idea"]
    )
    return kernel, Verdict.from_json(data["verdict"]) if data["verdict"] else None
