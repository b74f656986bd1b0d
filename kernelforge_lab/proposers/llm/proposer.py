"""The language model as a proposer: one paid question, at most one more about the form of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from ...kernels.kernel import Kernel
from ...kernels.region import Region
from ..base import Ask, Messages, ModelCall, Proposal
from ..outcome import Outcome
from . import menus, prompt, replies
from .client import Client, Endpoint, Reply
from .models import ModelBandit
from .pricing import Usage, cost_usd, tokens_of
from .prompt import Machine
from .replies import Parsed
from .settings import Settings

NAME: Final = "llm"

# A reply that went wrong is quoted back at most this long: it is there to be referred to, not to be paid for.
_QUOTED_CHARS: Final = 20_000

# No kernel fits in fewer tokens than this; rather stop than pay for a cut-off answer.
_LEAST_TOKENS: Final = 2_000

# After a reply that was eaten by reasoning, the second try may be this much longer.
_MORE_TOKENS: Final = 2

# A prompt with its parent, a kernel with some reasoning (the recorded transcripts' medians, rounded up).
_USUAL: Final = Usage(4_000, 4_000)


@dataclass
class LlmProposer:
    """Implements proposers.base.Proposer; safe to ask from several threads at once.

    Never raises for what an endpoint or a model does: every answer is a Proposal with its outcome, its
    calls and their costs. Without a purse in the ask it calls nobody.
    """

    settings: Settings
    machine: Machine = field(default_factory=Machine)
    endpoint: Endpoint | None = None
    name: str = NAME

    def __post_init__(self) -> None:
        self._endpoint = self.endpoint or Client(self.settings)
        self.models = ModelBandit(self.settings.models)

    def refuses(self, region: Region, target: str) -> str | None:  # noqa: ARG002
        return None if region.results else "the region returns nothing"

    def strategies(self, region: Region, target: str, parent: Kernel | None) -> tuple[str, ...]:
        """Everything that could be tried, whatever limits the region."""
        return self.menu(region, target, parent, "")

    def menu(
        self,
        region: Region,  # noqa: ARG002
        target: str,
        parent: Kernel | None,
        bottleneck: str,
    ) -> tuple[str, ...]:
        """What fits a region that is bound by ``bottleneck``."""
        return menus.menu(target, bottleneck, has_parent=parent is not None)

    def forecast(self, budget_usd: float) -> str:
        """What the calls of a run may cost, for people, before the first is made."""
        where = urlsplit(self.settings.base_url).hostname
        names = ", ".join(self.settings.models)
        usual = [cost_usd(self.settings, m, _USUAL) for m in self.settings.models]
        known = [usd for usd in usual if usd is not None]
        if not budget_usd:
            return f"LLM {names} at {where} is set up, but the budget is $0: nothing is sent."
        if not known:
            return f"LLM {names} at {where}: its price is unknown."
        if not max(known):
            return f"LLM {names} at {where} costs no dollars."
        calls = budget_usd / (sum(known) / len(known))
        return (
            f"LLM {names} at {where}: at most ${budget_usd:.2f} in this run, about {calls:.0f} calls of "
            f"${sum(known) / len(known):.3f}. What is sent is the code of regions, never data or weights."
        )

    def learn(self, proposal: Proposal, win: float) -> None:
        """How good a proposal turned out to be: which model to ask next depends on it."""
        if proposal.calls:
            self.models.won(proposal.calls[0].model, win)

    def propose(self, ask: Ask) -> Proposal:
        model = self.models.choose()
        said = prompt.messages(ask, self.machine)
        tokens = self.settings.output_tokens
        first = self._call(ask, model, said, tokens)
        if isinstance(first, Proposal):
            return first
        call, reply = first
        parsed = self._read(ask, reply)
        said = (*said, ("assistant", reply.text))
        calls = [call]
        if parsed.outcome.is_repairable and not ask.cancel.is_set:
            quoted = _quoted(reply.text)
            again = (*said[:-1], ("assistant", quoted), ("user", prompt.reply_repair(parsed, ask.target)))
            more = tokens * _MORE_TOKENS if parsed.outcome is Outcome.OUT_OF_TOKENS else tokens
            second = self._call(ask, model, again, more)
            if isinstance(second, Proposal):
                why = (parsed.outcome, parsed.reason, parsed.idea)
                return Proposal(None, *why, tuple(calls), said, second.ends)
            call, reply = second
            idea = parsed.idea
            parsed = self._read(ask, reply)
            # The idea is what the model said first; the second turn is only about form.
            parsed = Parsed(parsed.outcome, parsed.source, parsed.reason, parsed.idea or idea)
            said = (*again, ("assistant", reply.text))
            calls.append(call)
        return self._proposal(ask, parsed, tuple(calls), said)

    def _proposal(self, ask: Ask, parsed: Parsed, calls: tuple[ModelCall, ...], said: Messages) -> Proposal:
        kernel = None
        if parsed.outcome is Outcome.KERNEL:
            idea = ask.repair.kernel.idea if ask.repair else parsed.idea
            kernel = Kernel(parsed.source, ask.region.hash, ask.target, (), self.name, ask.strategy, idea)
        ends = parsed.reason if parsed.outcome.ends_the_llm else ""
        return Proposal(kernel, parsed.outcome, parsed.reason, parsed.idea, calls, said, ends)

    def _call(self, ask: Ask, model: str, said: Messages, tokens: int) -> tuple[ModelCall, Reply] | Proposal:
        """One call, paid for; a Proposal when none could be made."""
        if ask.cancel.is_set:
            return Proposal(None, Outcome.CANCELLED, "stopped", said=said)
        if ask.purse is None:
            return _over("there is no budget for paid calls", said)
        sent = tokens_of("".join(text for _, text in said))
        worst = cost_usd(self.settings, model, Usage(sent, tokens))
        least = cost_usd(self.settings, model, Usage(sent, _LEAST_TOKENS))
        if worst is None or least is None:
            reason = f"the price of {model!r} is unknown, so no cap could hold"
            hint = f"Set KERNELFORGE_LLM_PRICES={model}=INPUT/OUTPUT (USD per million tokens)."
            return Proposal(None, Outcome.NO_PRICE, reason, said=said, ends=f"{reason}. {hint}")
        left = ask.purse.left_usd(ask.region.hash)
        if worst > left > least:
            # Rather a shorter answer than none: tokens that the rest of the budget pays for.
            tokens = _LEAST_TOKENS + int((tokens - _LEAST_TOKENS) * (left - least) / (worst - least))
            worst = cost_usd(self.settings, model, Usage(sent, tokens)) or worst
        ticket = ask.purse.reserve(ask.region.hash, worst)
        if isinstance(ticket, str):
            return _over(ticket, said)
        usd = worst
        try:
            reply = self._endpoint.complete(model, said, tokens, ask.cancel)
            usd = cost_usd(self.settings, model, reply.usage) or 0.0
        finally:
            ask.purse.settle(ticket, usd)
        call = self._kept(ask, model, said, reply, usd)
        self.models.paid(model, usd)
        ask.on_call(call)
        return call, reply

    def _kept(self, ask: Ask, model: str, said: Messages, reply: Reply, usd: float) -> ModelCall:
        parsed = self._read(ask, reply)
        usage = reply.usage
        return ModelCall(
            model,
            prompt.as_text(said),
            reply.text or reply.refusal,
            parsed.outcome,
            parsed.reason,
            usage.input,
            usage.cached,
            usage.output,
            usage.reasoning,
            usd,
            reply.seconds,
            usage.is_estimate,
        )

    @staticmethod
    def _read(ask: Ask, reply: Reply) -> Parsed:
        if reply.outcome is not Outcome.KERNEL:
            return Parsed(reply.outcome, reason=reply.reason)
        if reply.refusal and not reply.text.strip():
            return Parsed(Outcome.REFUSED, reason=" ".join(reply.refusal.split())[:200])
        edited = ask.repair.kernel if ask.repair else ask.parent
        return replies.read(
            reply.text,
            ask.region,
            ask.target,
            parent=edited.source if edited else "",
            finish=reply.finish,
            threads=ask.threads or 1,
        )


def _quoted(text: str) -> str:
    """The model's own words, shortened; an empty reply is named, since servers refuse empty messages."""
    return text[:_QUOTED_CHARS] if text.strip() else "(no text)"


def _over(reason: str, said: Messages) -> Proposal:
    return Proposal(None, Outcome.OVER_BUDGET, reason, said=said, ends=reason)
