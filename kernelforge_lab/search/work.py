"""The pieces of work of a search, each a coroutine that yields futures and is sent their results.

One thread drives them all (``agent.Agent``), so nothing here needs a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ..events import Event, Log, NodeAdded, NodeJudged, RegionState
from ..judge.job import Job, Stock
from ..judge.verdict import Status, Verdict
from ..kernels.kernel import Kernel
from ..proposers.base import Ask
from ..proposers.human import Submission
from .budget import Ledger
from .forest import TUNE, Forest
from .judge import Judge
from .regions import RegionSearch
from .tree import Action, Node
from .tune import Params, halving

# How many kernels of a region get a chance in a fresh process before it keeps stock.
_FINALISTS: Final = 3

# Fresh inputs and a fresh order for the final measurement: any other seed than the search's.
_FINAL_SEED: Final = 1_000_003

Work: TypeAlias = "Generator[Future[Any], Any, None]"


class Bench:
    """Forest, judge and ledger together, and the coroutines that use them.

    ``proven`` maps region hash to the kernel that was re-measured faster, with that verdict.
    """

    def __init__(
        self, forest: Forest, judge: Judge, ledger: Ledger, emit: Callable[[Event], object], threads: int = 0
    ) -> None:
        self.forest, self.judge, self.ledger, self.emit, self.threads = forest, judge, ledger, emit, threads
        self.proven: dict[str, tuple[Kernel, Verdict]] = {}
        self.stocks: dict[str, Stock] = {}
        self.doing = ""

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
        self.emit(NodeAdded(root.id, search.hash, None, "stock", "", f"PyTorch: {stock.best}", ""))
        self.emit(NodeJudged(root.id, search.hash, root.verdict.as_json(), root.reward))
        self.tell(search)

    def trial(self, search: RegionSearch, action: Action) -> Work:
        """One expansion: ask the proposer (or race parameters), then judge what came."""
        search.tries += 1
        assert search.tree is not None
        parent = search.tree.nodes[action.parent]
        self.doing = f"{search.item.region.title}: {action.strategy}"
        kernel: Kernel | None = None
        if action.proposer == TUNE:
            kernel = yield from self._race(search, parent)
        else:
            ask = self._ask(search, parent, action)
            try:
                kernel = yield spawn(lambda: self.forest.proposers[action.proposer].propose(ask))
            except Exception as error:  # noqa: BLE001 - a proposer's bug costs its turn, not the run
                self.emit(Log("warning", f"{action.proposer} failed on {action.strategy}: {error!r}"))
        if kernel is None:
            self.forest.fruitless(search, action)
        else:
            yield from self.judged(search, kernel, parent.id, self.forest.new_id(), action)

    def by_hand(self, submission: Submission) -> Work:
        """A person's kernel, in any region and at any time; a new best is proven like any other."""
        search = self.forest.regions[submission.region]
        before = search.state
        if search.tree is None:
            yield from self.prepare(search)
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
        assert search.tree is not None
        kernel = self.forest.settled(kernel)
        added = search.tree.add(node, parent, kernel)
        if action:
            added.proposer, added.strategy = action.move
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

    def _ask(self, search: RegionSearch, parent: Node, action: Action) -> Ask:
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
            hint=search.hint_for(parent.id),
            threads=self.threads,
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
