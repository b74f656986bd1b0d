"""What a person tells a running search, obeyed by the agent's thread between two pieces of work."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ..events import Log, NodeMarked
from .forest import TUNE, Flight
from .regions import RegionSearch
from .tree import Action, Node
from .work import Bench, Work

SWITCHED_OFF: Final = "switched off by you"


@dataclass(frozen=True, slots=True)
class MoreBudget:
    """What the caps grow by: kernels, seconds, US dollars."""

    trials: int = 0
    seconds: float = 0.0
    usd: float = 0.0


@dataclass(frozen=True, slots=True)
class SwitchRegion:
    region: str
    on: bool


@dataclass(frozen=True, slots=True)
class MarkNode:
    """``mark``: pinned (the search goes on from there), pruned (never again), or empty (as it was)."""

    node: int
    mark: str


@dataclass(frozen=True, slots=True)
class ContinueFrom:
    """One more kernel from this node now; the hint holds for everything written below it."""

    node: int
    hint: str


@dataclass(frozen=True, slots=True)
class JudgeAgain:
    """A kernel whose judgement was lost with the process that waited for it."""

    node: int


Order: TypeAlias = MoreBudget | SwitchRegion | MarkNode | ContinueFrom | JudgeAgain


class Orders:
    """The queue of orders and how each is obeyed. Giving one is safe from any thread."""

    def __init__(self, bench: Bench) -> None:
        self.listener: Callable[[], None] = lambda: None
        self._bench = bench
        self._waiting: queue.SimpleQueue[Order] = queue.SimpleQueue()

    def give(self, order: Order) -> None:
        self._waiting.put(order)
        self.listener()

    @property
    def waiting(self) -> bool:
        return not self._waiting.empty()

    def obey(self) -> Iterator[tuple[Work, Flight]]:
        """Obey everything that waits; yields the work that an order asks for."""
        while True:
            try:
                order = self._waiting.get_nowait()
            except queue.Empty:
                return
            match order:
                case MoreBudget():
                    self._more(order)
                case SwitchRegion(region, on):
                    self._switch(self._bench.forest.regions[region], on)
                case MarkNode(node, mark):
                    self._mark(node, mark)
                case ContinueFrom(node, hint):
                    yield from self._continue(node, hint)
                case JudgeAgain(node):
                    search = self._bench.forest.region_of(node)
                    assert search.tree is not None
                    work = self._bench.judge_entered(search, search.tree.nodes[node])
                    yield work, Flight(search.hash, None)

    def _more(self, order: MoreBudget) -> None:
        ledger = self._bench.ledger
        had = ledger.budget
        ledger.budget = replace(
            had,
            trials=had.trials + order.trials,
            seconds=had.seconds + order.seconds,
            usd=had.usd + order.usd,
        )
        self._bench.forest.reinstate()
        for search in self._bench.forest.regions.values():
            if search.cut_short:
                self._reopen(search)

    def _switch(self, search: RegionSearch, on: bool) -> None:
        title = search.item.region.title
        if search.state == "ineligible":
            self._bench.emit(Log("warning", f"{title} cannot be searched: {search.reason}"))
        elif on and search.state in ("off", "done"):
            search.wanted = True
            self._reopen(search)
        elif not on and search.is_active:
            if search.tree is None:
                self._bench.close(search, SWITCHED_OFF, state="off")
            else:
                # Its best kernel so far is still proven, like that of any search that has ended.
                search.state, search.reason = "ending", SWITCHED_OFF
                self._bench.tell(search)

    def _reopen(self, search: RegionSearch) -> None:
        search.cut_short = False
        search.state, search.reason = ("searching" if search.tree else "waiting"), ""
        if search.tree:
            search.tree.since_best = 0
        self._bench.proven.pop(search.hash, None)
        self._bench.tell(search)

    def _mark(self, node: int, mark: str) -> None:
        found = self._find(node)
        if found is None:
            return
        search, at = found
        tree = search.tree
        assert tree is not None
        before = tree.pinned
        if mark == "pinned":
            tree.pinned = node
        elif before == node or (mark == "pruned" and before is not None and node in tree.ancestors(before)):
            tree.pinned = None
        if before is not None and before not in (tree.pinned, node):
            self._bench.emit(NodeMarked(before, search.hash, ""))
        at.pruned = mark == "pruned"
        self._bench.emit(NodeMarked(node, search.hash, mark))

    def _continue(self, node: int, hint: str) -> Iterator[tuple[Work, Flight]]:
        found = self._find(node)
        if found is None:
            return
        search, at = found
        spent = self._bench.ledger.exhausted()
        if spent:
            self._bench.emit(Log("warning", f"not continued from node {node}: {spent}; add budget first"))
            return
        if hint:
            search.hints[node] = hint
        action = self._move(at)
        if action is None:
            self._bench.emit(
                Log("warning", f"nothing is left to try from node {node}; edit its source instead")
            )
            return
        yield self._steered(search, action), Flight(search.hash, action)

    def _move(self, node: Node) -> Action | None:
        """The first untried move here, of proposers that can read a hint before those that cannot."""
        moves = [m for m in self._bench.forest.menu(node) if m[0] != TUNE and m not in node.tried]
        moves.sort(key=lambda move: move[0] == "templates")
        return Action(node.id, *moves[0]) if moves else None

    def _steered(self, search: RegionSearch, action: Action) -> Work:
        """A trial in any region, also one whose search is over; a new best is proven like any other."""
        tree = search.tree
        assert tree is not None
        before, best = search.state, tree.best
        yield from self._bench.trial(search, action)
        if before not in ("waiting", "searching") and tree.best != best:
            search.state = "ending"

    def _find(self, node: int) -> tuple[RegionSearch, Node] | None:
        try:
            search = self._bench.forest.region_of(node)
        except KeyError:
            self._bench.emit(Log("warning", f"there is no node {node}"))
            return None
        assert search.tree is not None
        return search, search.tree.nodes[node]
