"""Going on with a stored run: the search as its events left it, also in another process."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from . import conversation
from .capture.workload import Roofs, VendorOp, Workload, WorkloadRegion
from .exc import ProblemError
from .judge.job import Stock
from .judge.verdict import Status, Verdict
from .kernels.region import Region
from .kernels.stats import InputStats
from .search.agent import Agent
from .search.budget import Budget, Ledger
from .search.forest import Forest
from .search.judge import OpenOnUse
from .search.memory import LIBRARY
from .search.orders import JudgeAgain
from .search.regions import RegionSearch

if TYPE_CHECKING:
    from .history import History, NodeRecord, RegionRecord
    from .log import EventLog
    from .options import Options
    from .proposers.human import HumanProposer
    from .rooms import Rooms

Json = dict[str, Any]

# How the agent words it when a search was cut off rather than ended (``Agent._abandon``).
_CUT_OFF: Final = re.compile(r"(not searched: )?the run (was stopped|failed)")
_OUT_OF_BUDGET: Final = re.compile(r"(not searched|the run ended): ")
_TWIN: Final = re.compile(r"\bnode (\d+)")


class Resuming:
    """The part of a Run that takes up what another process began."""

    if TYPE_CHECKING:
        options: Options
        log: EventLog
        workload: Workload | None
        _rooms: Rooms
        _human: HumanProposer
        _call: Any

        @property
        def history(self) -> History: ...

        def _measure(self, proven: Any) -> Any: ...

    def _take_up(self) -> Agent:
        """An agent that stands where the stored run stood; this process writes the run from now on."""
        from .store import Store

        history = self.history
        workload = workload_of(history.started)
        options = options_of(history, self.options)
        rooms = self._rooms
        if not self.log.is_kept:
            store = Store()
            store.claim(self.log.run)
            self.log.keep_in(store)
        proposers = rooms.proposers(options)
        memory = rooms.memory(options, self.log.run)
        wanted = {r.hash for r in history.regions.values() if r.reason != "not among the regions asked for"}
        forest = Forest(
            workload.regions,
            proposers,
            options.target,
            roofs=workload.roofs,
            seed=options.seed,
            wanted=wanted if len(wanted) < len(history.regions) else None,
            memory=memory,
        )
        ledger = Ledger(Budget(options.trials, options.minutes * 60, options.budget_usd))
        agent = Agent(
            forest,
            OpenOnUse(lambda: rooms.judge(options)),
            ledger,
            self.log.emit,
            human=self._human,
            finish=self._measure if options.measure and self._call is not None else None,
            parallel=conversation.set_up(proposers, ledger, self.log, workload.ceiling),
            threads=rooms.device(options)[1],
            memory=memory,
            places=rooms.places(options),
        )
        self.options, self.workload = options, workload
        for node in replant(agent, history):
            agent.orders.give(JudgeAgain(node))
        return agent


def workload_of(started: Json) -> Workload:
    """The captured model as the run's first event tells it. Raises ProblemError for one that is too old."""
    try:
        return Workload(
            started["title"],
            started["target"],
            started["level"],
            started["step_ms"],
            started["busy"],
            tuple(_region(info) for info in started["regions"]),
            tuple(VendorOp(**op) for op in started["vendor"]),
            tuple(started["uncaptured"]),
            Roofs.from_json(started["roofs"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProblemError(
            f"This run was stored without what a search needs ({error!r}).",
            "It was made by an older version: use forge() on the model again.",
        ) from error


def _region(info: Json) -> WorkloadRegion:
    return WorkloadRegion(
        Region.parse(info["text"]),
        info["count"],
        info["time_us"],
        info["share"],
        info["floor_us"],
        info["ceiling"],
        info["eligible"],
        info["reason"],
        tuple(InputStats(**stats) for stats in info["stats"]),
    )


def options_of(history: History, now: Options) -> Options:
    """What was asked of the run, with the budget it had in the end; proposers are this process's own."""
    started, meter = history.started, history.meter
    budget = started["budget"]
    return replace(
        now,
        target=started["target"],
        level=started["level"],
        seed=started["seed"],
        title=started["title"],
        trials=int(meter.get("trials_max", budget["trials"])),
        minutes=float(meter["limit_s"] / 60 if meter else budget["minutes"]),
        budget_usd=float(meter.get("budget_usd", budget["usd"])),
    )


def replant(agent: Agent, history: History) -> list[int]:
    """Grow the agent's trees as they were; returns the nodes whose verdict was still awaited."""
    forest, bench = agent.forest, agent.bench
    waiting: list[int] = []
    for record in history.regions.values():
        search = forest.regions[record.hash]
        nodes = [history.nodes[n] for n in record.nodes]
        root = next((n for n in nodes if n.status == "stock"), None)
        if root is not None:
            forest.told_roots[record.hash] = root.id
        if root is not None and root.verdict is not None:
            stock = Stock(record.hash, dict(root.verdict.stocks_us))
            bench.stocks[record.hash] = stock
            forest.plant(search, stock)
            waiting += [node.id for node in nodes if not _grow(forest, search, node)]
        _settle(agent, search, record, history)
    forest.resume_ids(max(history.nodes, default=0))
    usd: dict[str, float] = {}
    for call in history.calls:
        usd[call["region"]] = usd.get(call["region"], 0.0) + call["usd"]
    for name, paid in usd.items():
        if name in forest.regions:
            forest.regions[name].paid_usd = paid
    judged = sum(_was_trial(node) for node in history.nodes.values())
    meter = history.meter
    agent.ledger.carry(max(judged, int(meter.get("trials", 0))), float(meter.get("elapsed_s", 0.0)), usd)
    return waiting


def _grow(forest: Forest, search: RegionSearch, node: NodeRecord) -> bool:
    """Put a node back into its tree; False when it has no verdict yet."""
    tree = search.tree
    assert tree is not None
    if node.status == "stock":
        return True
    kernel = node.kernel(forest.target)
    parent = node.parent if node.parent in tree.nodes else tree.root
    assert parent is not None
    grown = tree.add(node.id, parent, kernel)
    grown.pruned = node.mark == "pruned"
    if node.mark == "pinned":
        tree.pinned = node.id
    verdict = node.verdict
    if verdict is None:
        return False
    forest.twin_by_source(kernel, node.id)
    forest.twin_by_binary(kernel, verdict, node.id)
    search.tries += 1
    search.busy_s += verdict.seconds
    forest.record(search, None, node.id, verdict, _twin_of(verdict, tree.nodes))
    forest.bandit.learn(search.bottleneck, (node.proposer, node.strategy), forest.win(search, node.id))
    return True


def _twin_of(verdict: Verdict, nodes: Any) -> int | None:
    if verdict.status is not Status.DUPLICATE:
        return None
    found = _TWIN.search(verdict.evidence)
    return int(found[1]) if found and int(found[1]) in nodes else None


def _settle(agent: Agent, search: RegionSearch, record: RegionRecord, history: History) -> None:
    """The state a region is in: decided regions stay so, those that were cut off are open again."""
    best = history.best(record)
    search.cut_short = bool(_OUT_OF_BUDGET.match(record.reason))
    if record.proven and best is not None and best.verdict is not None:
        search.state, search.reason = "done", record.reason
        agent.bench.proven[search.hash] = (best.kernel(agent.forest.target), best.verdict)
    elif record.state in ("done", "off") and not _CUT_OFF.match(record.reason):
        search.state, search.reason = record.state, record.reason
    elif search.state not in ("ineligible", "off") or search.tree is not None:
        search.state, search.reason = ("searching" if search.tree else "waiting"), ""


def _was_trial(node: NodeRecord) -> bool:
    judged = node.verdict is not None and node.verdict.status is not Status.DUPLICATE
    return judged and node.proposer not in ("stock", LIBRARY)
