"""What a run says to language models and what that costs: prompts to read or paste, replies, the bill."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .events import Log
from .exc import ProblemError, StoreError
from .options import Options
from .proposers.base import PaidProposer, Proposer

if TYPE_CHECKING:
    import pandas as pd

    from .history import History, NodeRecord
    from .log import EventLog
    from .search.agent import Agent
    from .search.budget import Ledger

# Questions to models under way at once: they wait for other machines, the judge takes one kernel at a time.
_AT_ONCE: Final = 4

_COLUMNS: Final = (
    "call node region ops parent model outcome input_tokens cached_tokens output_tokens reasoning_tokens usd "
    "total_usd seconds speedup best_step is_estimate reason"
).split()


class Conversation:
    """The part of a Run that is about language models."""

    if TYPE_CHECKING:
        options: Options

        @property
        def _running_agent(self) -> Agent: ...

        @property
        def history(self) -> History: ...

        def node(self, node: int) -> NodeRecord: ...

        def submit(
            self, source: str, region: str | None = None, *, parent: int | None = None, idea: str = ""
        ) -> int: ...

    def prompt(self, node: int, strategy: str = "", hint: str = "") -> str:
        """The exact prompt that asks for a kernel made from this node, to read or to paste into any chat.

        ``strategy`` is a name of the LLM's menu (default: repair a wrong kernel, else a free choice), or
        your own words.
        """
        from .proposers.llm import prompt
        from .search.tree import Action
        from .search.work import REPAIRABLE

        agent = self._running_agent
        search = _search_of(agent, node)
        assert search.tree is not None
        at = search.tree.nodes[node]
        if not strategy:
            wrong = at.verdict is not None and at.kernel is not None and at.verdict.status in REPAIRABLE
            strategy = "repair" if wrong else "your own idea" if at.kernel else "from scratch"
        ask = agent.bench.ask(search, at, Action(node, "human", strategy), hint)
        return prompt.as_text(prompt.messages(ask, prompt.machine_of(agent.forest.target)))

    def propose(self, text: str, node: int) -> int:
        """A model's reply to ``prompt(node)``, pasted: read like any reply, judged next; its node number.

        Raises ProblemError saying what is wrong when there is no kernel in it.
        """
        from .proposers.llm import replies
        from .proposers.outcome import Outcome

        agent = self._running_agent
        search = _search_of(agent, node)
        assert search.tree is not None
        kernel = search.tree.nodes[node].kernel
        parsed = replies.read(
            text,
            search.item.region,
            agent.forest.target,
            parent=kernel.source if kernel else "",
            threads=agent.bench.threads or 1,
        )
        if parsed.outcome is not Outcome.KERNEL:
            raise ProblemError(f"propose: {parsed.reason} ({parsed.outcome.value}).", "Tell the model so.")
        return self.submit(parsed.source, parent=node, idea=parsed.idea)

    @property
    def costs(self) -> pd.DataFrame:
        """One row per call of a model: tokens, dollars (also summed up), what its kernel brought.

        ``speedup`` is the kernel's against stock, ``best_step`` the best whole step reached by then,
        estimated from the regions' best kernels.
        """
        return bill(self.history)


def bill(history: History) -> pd.DataFrame:
    """See ``Conversation.costs``."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    best: dict[str, float] = {}
    total = 0.0
    for number, call in enumerate(history.calls, start=1):
        total += call["usd"]
        node = history.nodes.get(call["node"]) if call["node"] is not None else None
        verdict = node.verdict if node else None
        timing = verdict.timing if verdict and verdict.status.is_correct else None
        if timing:
            best[call["region"]] = max(best.get(call["region"], 1.0), timing.speedup)
        region = history.regions.get(call["region"])
        rows.append(
            {
                **{name: call.get(name) for name in _COLUMNS},
                "call": number,
                "ops": region.info["title"] if region else "",
                "total_usd": total,
                "speedup": timing.speedup if timing else None,
                "best_step": _step(history, best),
            }
        )
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"node": "Int64", "parent": "Int64"})


def _step(history: History, best: Mapping[str, float]) -> float:
    """Amdahl over the regions' shares."""
    saved = sum(
        history.regions[r].info["share"] * (1 - 1 / s) for r, s in best.items() if r in history.regions
    )
    return float(1 / max(1 - saved, 1e-3))


def set_up(proposers: list[Proposer], ledger: Ledger, log: EventLog, ceiling: float) -> int:
    """Give a paid proposer its purse and say what it may cost, before anything is sent.

    Returns how many questions may be under way at once (1 without a paid proposer).
    """
    from .proposers.llm.proposer import LlmProposer
    from .proposers.llm.settings import HINT

    paid = [p for p in proposers if isinstance(p, PaidProposer)]
    if not paid:
        if "KERNELFORGE_LLM_MODEL" not in os.environ:
            log.emit(Log("info", f"Kernels come from the built-in templates. {HINT}"))
        return 1
    for proposer in paid:
        if isinstance(proposer, LlmProposer):
            settings = proposer.settings
            ledger.purse.region_usd, ledger.purse.day_usd = settings.region_usd, settings.day_usd
            ledger.purse.spent_elsewhere = lambda: _spent_today_usd(log.run)
            log.emit(
                Log(
                    "info",
                    f"{proposer.forecast(ledger.budget.usd)} The ceiling of the run is {ceiling:.2f}×.",
                )
            )
    return _AT_ONCE


def _spent_today_usd(run: str) -> float:
    """What other runs in the store have paid since midnight; 0 when there is no store."""
    from .store import Store

    now = time.localtime()
    midnight = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, -1))
    try:
        store = Store()
        try:
            return store.spent_usd(midnight, besides=run)
        finally:
            store.close()
    except StoreError:
        return 0.0


def _search_of(agent: Agent, node: int) -> Any:
    try:
        return agent.forest.region_of(node)
    except KeyError:
        raise ProblemError(f"node: there is no node {node!r}.", "run.frame() lists them.") from None
