"""The pieces of work of a search, each a coroutine that yields futures and is sent their results.

One thread drives them all (``agent.Agent``), so nothing here needs a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from ..events import Event, Log, ModelCalled, NodeAdded, NodeJudged, RegionState
from ..judge.job import Job, Stock
from ..judge.verdict import Status, Verdict
from ..kernels.kernel import Kernel
from ..proposers.base import Ask, Cancel, Facts, ModelCall, PaidProposer, Proposal, Repair
from ..proposers.human import Submission
from ..proposers.outcome import Outcome
from .budget import Ledger
from .forest import TUNE, Forest
from .judge import Judge
from .memory import LIBRARY, Memory
from .regions import RegionSearch
from .tree import Action, Node
from .tune import Params, halving

# How many kernels of a region get a chance in a fresh process before it keeps stock.
_FINALISTS: Final = 3

# Turns a model gets to repair one kernel (search.md), and what repairing can help against.
_REPAIRS: Final = 2
REPAIRABLE: Final = frozenset(
    {
        Status.PARSE_ERROR,
        Status.REJECTED,
        Status.COMPILE_ERROR,
        Status.LAUNCH_ERROR,
        Status.CRASHED,
        Status.TIMEOUT,
        Status.OUT_OF_BOUNDS,
        Status.UNWRITTEN,
        Status.MUTATED_INPUT,
        Status.WRONG,
        Status.NONDETERMINISTIC,
    }
)

# Fresh inputs and a fresh order for the final measurement: any other seed than the search's.
_FINAL_SEED: Final = 1_000_003

Work: TypeAlias = "Generator[Future[Any], Any, None]"


class Bench:
    """Forest, judge and ledger together, and the coroutines that use them.

    ``proven`` maps region hash to the kernel that was re-measured faster, with that verdict.
    """

    def __init__(
        self,
        forest: Forest,
        judge: Judge,
        ledger: Ledger,
        emit: Callable[[Event], object],
        *,
        threads: int = 0,
        memory: Memory | None = None,
    ) -> None:
        self.forest, self.judge, self.ledger, self.emit, self.threads = forest, judge, ledger, emit, threads
        self.memory = memory
        self.proven: dict[str, tuple[Kernel, Verdict]] = {}
        self.stocks: dict[str, Stock] = {}
        self.doing = ""
        self._cancel = Cancel()

    def prepare(self, search: RegionSearch) -> Work:
        """Measure stock; the region's tree starts."""
        search.state = "searching"
        self.tell(search, reason="measuring stock")
        self.doing = f"{search.item.region.title}: measuring stock"
        stock = yield self.judge.prepare(search.item.region, search.item.stats)
        if stock.refused or not stock.times_us:
            self.close(search, stock.refused or f"stock was not measured: {stock.reason}", state="ineligible")
            return
        self.stocks[search.hash] = stock
        root = self.forest.plant(search, stock)
        assert root.verdict is not None and root.reward is not None
        if search.hash not in self.forest.told_roots:
            self.emit(NodeAdded(root.id, search.hash, None, "stock", "", f"PyTorch: {stock.best}", ""))
        self.emit(NodeJudged(root.id, search.hash, root.verdict.as_json(), root.reward))
        self.tell(search)
        yield from self._remembered(search)

    def _remembered(self, search: RegionSearch) -> Work:
        """Prove again what earlier runs proved; a winner of this device ends the search before it begins.

        It is no trial: nothing was written for it and nothing is paid.
        """
        region, tree = search.item.region, search.tree
        assert tree is not None
        for known in self.memory.known(region) if self.memory else ():
            kernel = self.forest.settled(replace(known.kernel, proposer=LIBRARY, strategy=known.origin))
            node = self._enter(search, kernel, tree.root, self.forest.new_id())
            self.doing = f"{region.title}: proving a known kernel again"
            self.forest.twin_by_source(kernel, node.id)
            seed = self.forest.seed + _FINAL_SEED
            try:
                verdict = yield self.judge.submit(self._job(search, kernel, seed, finalist=True))
            except BaseException:
                self.forest.forget(kernel, node.id)
                raise
            self.forest.twin_by_binary(kernel, verdict, node.id)
            self.forest.record(search, None, node.id, verdict)
            self.emit(NodeJudged(node.id, search.hash, verdict.as_json(), node.reward or 0.0))
            if verdict.status is Status.FASTER and known.is_of_here:
                self.proven[search.hash] = (kernel, verdict)
                self.close(search, f"a proven kernel of {known.origin}, proven again", node)
                return
            if verdict.status in REPAIRABLE and self.memory:
                self.memory.forget(region, known.kernel)
            self.tell(search)

    def trial(self, search: RegionSearch, action: Action) -> Work:
        """One expansion: ask the proposer (or race parameters), then judge what came."""
        search.tries += 1
        assert search.tree is not None
        parent = search.tree.nodes[action.parent]
        self.doing = f"{search.item.region.title}: {action.strategy}"
        if isinstance(self.forest.proposers.get(action.proposer), PaidProposer):
            yield from self._paid_trial(search, parent, action)
            return
        kernel: Kernel | None = None
        if action.proposer == TUNE:
            kernel = yield from self._race(search, parent)
        else:
            ask = self.ask(search, parent, action)
            try:
                answer = yield spawn(lambda: self.forest.proposers[action.proposer].propose(ask))
                kernel = answer.kernel if isinstance(answer, Proposal) else answer
            except Exception as error:  # noqa: BLE001 - a proposer's bug costs its turn, not the run
                self.emit(Log("warning", f"{action.proposer} failed on {action.strategy}: {error!r}"))
        if kernel is None:
            self.forest.fruitless(search, action)
        else:
            yield from self.judged(search, kernel, parent.id, self.forest.new_id(), action)

    def _paid_trial(self, search: RegionSearch, parent: Node, action: Action) -> Work:
        """Ask a model, judge its kernel, and let it repair what the judge found wrong, twice at most."""
        proposer = self.forest.proposers[action.proposer]
        assert isinstance(proposer, PaidProposer)
        asked, place = self.ask(search, parent, action), parent.id
        for turn in range(_REPAIRS + 1):
            node = self.forest.new_id()
            ask = replace(asked, on_call=partial(self._told, search, node, place))
            try:
                proposal: Proposal = yield spawn(partial(proposer.propose, ask))
            except Exception as error:  # noqa: BLE001 - a proposer's bug costs its turn, not the run
                self.emit(Log("warning", f"{action.proposer} failed on {action.strategy}: {error!r}"))
                proposal = Proposal(None, Outcome.BAD_RESPONSE, repr(error))
            search.paid_usd += proposal.usd
            self.ledger.usd = self.ledger.purse.spent_usd
            if proposal.ends and self.forest.retire(action.proposer, proposal.ends):
                self.emit(Log("warning", f"no more calls of a language model in this run: {proposal.ends}"))
            if proposal.kernel is None:
                proposer.learn(proposal, 0.0)
                if not turn:
                    self.forest.fruitless(search, action)
                return
            yield from self.judged(search, proposal.kernel, place, node, action)
            proposer.learn(proposal, self.forest.win(search, node))
            assert search.tree is not None
            verdict = search.tree.nodes[node].verdict
            kernel = search.tree.nodes[node].kernel
            if kernel is None or verdict is None or verdict.status not in REPAIRABLE:
                return
            repair = Repair(turn + 1, kernel, verdict, proposal.said)
            strategy = f"{action.strategy} · repair {turn + 1}"
            asked, place = replace(asked, strategy=strategy, repair=repair), node

    def _told(self, search: RegionSearch, node: int, parent: int, call: ModelCall) -> None:
        """A call has ended; from the proposer's own thread, also after the run was stopped."""
        self.emit(
            ModelCalled(
                node if call.outcome is Outcome.KERNEL else None,
                search.hash,
                parent,
                call.model,
                call.prompt,
                call.reply,
                call.input_tokens,
                call.cached_tokens,
                call.output_tokens,
                call.usd,
                call.seconds,
                call.outcome.value,
                call.reason,
                call.reasoning_tokens,
                call.is_estimate,
            )
        )

    def stop_calls(self) -> None:
        """End every call of a model that is under way."""
        cancel, self._cancel = self._cancel, Cancel()
        cancel.set()

    def by_hand(self, submission: Submission) -> Work:
        """A person's kernel, in any region and at any time; a new best is proven like any other."""
        search = self.forest.regions[submission.region]
        before = search.state
        if search.tree is None:
            yield from self.prepare(search)
            before = search.state
        tree = search.tree
        if tree is None:
            self.emit(
                Log("error", f"the kernel for {search.item.region.title} was not judged: {search.reason}")
            )
            return
        parent = submission.parent if submission.parent in tree.nodes else tree.root
        assert parent is not None
        best = tree.best
        yield from self.judged(search, submission.kernel(self.forest.target), parent, submission.node)
        if before not in ("waiting", "searching"):
            search.state = "ending" if tree.best != best else before
            search.reason = search.reason or "judged by hand"

    def judged(
        self, search: RegionSearch, kernel: Kernel, parent: int, node: int, action: Action | None = None
    ) -> Work:
        """Add a kernel to the tree, judge it unless it has a twin, record the verdict."""
        kernel = self.forest.settled(kernel)
        added = self._enter(search, kernel, parent, node)
        if action:
            added.proposer, added.strategy = action.move
        yield from self.judge_entered(search, added, action)

    def _enter(self, search: RegionSearch, kernel: Kernel, parent: int, node: int) -> Node:
        """A kernel enters the tree and is told of."""
        assert search.tree is not None
        added = search.tree.add(node, parent, kernel)
        params = dict(kernel.params)
        self.emit(
            NodeAdded(
                node,
                search.hash,
                parent,
                kernel.proposer,
                kernel.strategy,
                kernel.idea,
                kernel.source,
                params,
            )
        )
        return added

    def judge_entered(self, search: RegionSearch, added: Node, action: Action | None = None) -> Work:
        """Judge a kernel of the tree unless it has a twin, record the verdict."""
        kernel, node = added.kernel, added.id
        assert kernel is not None
        twin = self.forest.twin_by_source(kernel, node)
        if twin is not None:
            verdict = self.forest.duplicate_of(search, twin)
        else:
            self.ledger.trials += 1
            try:
                verdict = yield self.judge.submit(self._job(search, kernel, self.forest.seed))
            except BaseException:
                self.forest.forget(kernel, node)
                raise
            search.busy_s += verdict.seconds
            twin = self.forest.twin_by_binary(kernel, verdict, node)
            if twin is not None:
                verdict = self.forest.duplicate_of(search, twin)
        new_best = self.forest.record(search, action, node, verdict, twin)
        self.emit(NodeJudged(node, search.hash, verdict.as_json(), added.reward or 0.0))
        if new_best:
            self.tell(search)

    def final(self, search: RegionSearch) -> Work:
        """Re-measure the best kernels in a fresh process; the first that is faster there wins."""
        assert search.tree is not None
        search.state = "final"
        candidates = [n for n in search.tree.ranked() if n.verdict and n.verdict.status is Status.FASTER]
        for node in candidates[:_FINALISTS]:
            assert node.kernel is not None
            self.doing = f"{search.item.region.title}: measuring the winner in a fresh process"
            seed = self.forest.seed + _FINAL_SEED
            verdict = yield self.judge.submit(self._job(search, node.kernel, seed, finalist=True))
            search.tree.rejudge(node.id, verdict)
            self.emit(NodeJudged(node.id, search.hash, verdict.as_json(), node.reward or 0.0))
            if verdict.status is Status.FASTER:
                self.proven[search.hash] = (node.kernel, verdict)
                if self.memory:
                    self.memory.remember(search.item.region, node.kernel, verdict)
                self.close(search, search.reason, node)
                return
        if candidates:
            search.reason += "; in a fresh process no kernel was faster than stock"
        self.close(search, search.reason)

    def close(
        self, search: RegionSearch, reason: str, winner: Node | None = None, state: str = "done"
    ) -> None:
        """The region's last word; only a re-measured winner has numbers."""
        search.state, search.reason = state, reason
        timing = winner.verdict.timing if winner and winner.verdict else None
        self.emit(
            RegionState(
                search.hash,
                state,
                reason,
                winner.id if winner else None,
                timing.speedup if timing else None,
                timing.low if timing else None,
                timing.high if timing else None,
            )
        )

    def tell(self, search: RegionSearch, reason: str = "") -> None:
        """The region's state while it is searched, with its best so far."""
        best = search.best
        timing = best.verdict.timing if best and best.verdict else None
        state = "searching" if search.state in ("ending", "final") else search.state
        event = RegionState(search.hash, state, reason or search.reason, best.id if best else None)
        if timing:
            event = RegionState(
                event.region, event.state, event.reason, event.best, timing.speedup, timing.low, timing.high
            )
        self.emit(event)

    def _race(self, search: RegionSearch, node: Node) -> Generator[Future[Any], Any, Kernel | None]:
        """Quick measurements of a kernel's other parameters; None when none of them is faster."""
        kernel = node.kernel
        assert kernel is not None
        others = [params for params in self.forest.choices(node) if params != kernel.params]
        merits: dict[Params, float | None] = {}
        contest = halving(others)
        try:
            rung = next(contest)
            while True:
                for params in rung.combinations:
                    done = min(len(merits) + 1, len(others))
                    self.doing = f"{search.item.region.title}: tuning {done} of {len(others)}"
                    seed = self.forest.seed + rung.number
                    job = self._job(search, kernel.tuned(**dict(params)), seed, quick=True)
                    verdict: Verdict = yield self.judge.submit(job)
                    search.busy_s += verdict.seconds
                    timing = verdict.timing if verdict.status.is_correct else None
                    merits[params] = timing.speedup if timing else None
                rung = contest.send([merits[params] for params in rung.combinations])
        except StopIteration as end:
            winner: Params | None = end.value
        if winner is None or (merits[winner] or 0.0) <= (node.speedup or 0.0):
            return None
        return replace(kernel, params=winner, proposer=node.proposer, strategy=TUNE)

    def ask(self, search: RegionSearch, parent: Node, action: Action, hint: str = "") -> Ask:
        """The question that an action is, with everything known of its place in the tree."""
        assert search.tree is not None
        nodes = search.tree.nodes
        siblings = tuple((nodes[c].kernel, nodes[c].verdict) for c in parent.children)
        return Ask(
            search.item.region,
            self.forest.target,
            action.strategy,
            parent.kernel,
            parent.verdict if parent.kernel else None,
            tuple((kernel, verdict) for kernel, verdict in siblings if kernel is not None),
            seed=self.forest.seed + search.tree.expansions,
            hint=hint or search.hint_for(parent.id),
            threads=self.threads,
            facts=self.facts(search),
            purse=self.ledger.purse,
            cancel=self._cancel,
        )

    def facts(self, search: RegionSearch) -> Facts:
        """What is known of a region beyond its text."""
        stock = self.stocks.get(search.hash)
        roofs = self.forest.roofs
        return Facts(
            search.bottleneck,
            tuple(stock.times_us.items()) if stock else (),
            search.floor_us,
            search.reachable_us,
            search.item.share,
            search.item.count,
            roofs.bandwidth_gbps,
            roofs.gflops,
        )

    def _job(
        self, search: RegionSearch, kernel: Kernel, seed: int, *, quick: bool = False, finalist: bool = False
    ) -> Job:
        best = search.best
        timing = best.verdict.timing if best and best.verdict and not finalist else None
        return Job(
            search.item.region,
            kernel,
            search.item.stats,
            seed,
            finalist=finalist,
            quick=quick,
            best_us=timing.kernel_us if timing else None,
        )


def spawn(function: Callable[[], Any]) -> Future[Any]:
    """Run in a thread of its own that nobody has to wait for (also not the interpreter's exit)."""
    future: Future[Any] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever reads the future
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, daemon=True, name="kernelforge-proposer").start()
    return future
