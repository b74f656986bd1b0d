"""All regions of a run: who may write for them, what comes next, what was learnt."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..capture.workload import Roofs, WorkloadRegion
from ..exc import KernelSourceError
from ..judge.job import Stock
from ..judge.verdict import Status, Timing, Verdict
from ..kernels.format import parse
from ..kernels.kernel import Kernel
from ..proposers.base import PaidProposer, Proposer
from . import policy, reward
from .bandit import Bandit, Move
from .budget import Ledger
from .identity import binary_key, source_key
from .memory import Memory
from .regions import RegionSearch, bottleneck_of, next_region
from .tree import Action, Node, Tree
from .tune import Params, combinations

# The move that chooses a kernel's parameters; it belongs to nobody, so it competes as its own strategy.
TUNE: Final = "tune"

# Before any expansion has been seen it takes about this long (compile, prove, time) on two cores.
_USUAL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Flight:
    """A region with the action under way in it (None while its stock is being measured)."""

    region: str
    action: Action | None


class Forest:
    """The search state of a run. Deterministic: the same calls in the same order give the same trees."""

    def __init__(
        self,
        items: Iterable[WorkloadRegion],
        proposers: Sequence[Proposer],
        target: str,
        *,
        roofs: Roofs,
        seed: int = 0,
        wanted: Collection[str] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._memory = memory
        self.target = target
        self.seed = seed
        self.roofs = roofs
        self.proposers = {proposer.name: proposer for proposer in proposers}
        self.bandit = Bandit()
        self.regions: dict[str, RegionSearch] = {}
        self._ids = itertools.count(1)
        self._sources: dict[str, int] = {}
        self._binaries: dict[str, int] = {}
        # Roots that were told of before their stock was known, when the run's process was killed.
        self.told_roots: dict[str, int] = {}
        self._menus: dict[int, tuple[Move, ...]] = {}
        self._retired: dict[str, str] = {}
        for item in items:
            search = RegionSearch(item, bottleneck_of(item, roofs), wanted=bool(wanted))
            search.state, search.reason = self._first_state(search, wanted)
            self.regions[search.hash] = search

    def region_of(self, node: int) -> RegionSearch:
        """Raises KeyError when no region has the node."""
        for search in self.regions.values():
            if search.tree and node in search.tree.nodes:
                return search
        raise KeyError(node)

    def new_id(self) -> int:
        """Node ids are unique in the run; taking one is safe from any thread."""
        return next(self._ids)

    def resume_ids(self, after: int) -> None:
        """Later nodes get numbers past ``after``: a run goes on that was read back from its events."""
        self._ids = itertools.count(after + 1)

    def plant(self, search: RegionSearch, stock: Stock) -> Node:
        """Stock of a region is known: its tree starts."""
        times_us = dict(stock.times_us)
        search.stock, search.stock_us, search.noise = stock.best, stock.best_us, stock.noise
        if 0 < stock.floor_us < search.floor_us:
            search.floor_us = stock.floor_us
        search.tree = Tree(self.told_roots.get(search.hash) or self.new_id(), search.reward_of_stock())
        root = search.tree.nodes[search.tree.root]
        others = ", ".join(f"{name} {us:.1f} µs" for name, us in times_us.items() if name != stock.best)
        root.verdict = Verdict(
            Status.SLOWER,
            f"stock: {stock.best} {stock.best_us:.1f} µs" + (f" ({others})" if others else ""),
            timing=Timing(stock.best_us, stock.best, stock.best_us, 1.0, 1.0, 1.0, 0),
            stocks_us=times_us,
        )
        return root

    def next(self, flights: Collection[Flight], ledger: Ledger) -> tuple[RegionSearch, Action | None] | None:
        """The region to work on and what to do there (None: measure its stock); None when there is none.

        Regions that are through with searching become ``ending`` on the way.
        """
        blocked = {flight.region for flight in flights if flight.action is None}
        while True:
            for search in self.regions.values():
                if search.state == "searching" and search.tree and (reason := search.stop_reason()):
                    search.state, search.reason = "ending", reason
            free = [search for search in self.regions.values() if search.hash not in blocked]
            found = next_region(free, ledger, self._usual_s)
            if found is None or found.tree is None:
                return (found, None) if found else None
            busy = [f.action for f in flights if f.region == found.hash and f.action]
            action = self._choose(found, found.tree, busy)
            if action:
                return found, action
            if not busy:
                found.state, found.reason = "ending", "nothing is left to try"
            blocked.add(found.hash)

    def ended(self, flights: Collection[Flight]) -> list[RegionSearch]:
        """Regions whose search is over, with nothing of theirs under way: their winners can be proven."""
        busy = {flight.region for flight in flights}
        return [s for s in self.regions.values() if s.state == "ending" and s.hash not in busy]

    def _choose(self, search: RegionSearch, tree: Tree, busy: Sequence[Action]) -> Action | None:
        if not busy and policy.needs_restart(tree, self.menu):
            tree.restart()
        return policy.choose(tree, self.menu, self.bandit, search.bottleneck, seed=self.seed, in_flight=busy)

    @property
    def _usual_s(self) -> float:
        """Mean seconds of an expansion so far."""
        tries = sum(search.tries for search in self.regions.values())
        return sum(search.busy_s for search in self.regions.values()) / tries if tries else _USUAL_S

    def menu(self, node: Node) -> tuple[Move, ...]:
        """Every move at a node: its parameters first, then what the proposers offer, in their order.

        Proposers that said they cannot go on offer nothing any more.
        """
        if node.id not in self._menus:
            search = self.region_of(node.id)
            moves = [(TUNE, TUNE)] if self.choices(node) else []
            for proposer in self.proposers.values():
                if proposer.refuses(search.item.region, self.target) is None:
                    offers = self._offers(proposer, search, node)
                    moves += [(proposer.name, strategy) for strategy in offers]
            self._menus[node.id] = tuple(moves)
        moves_of_all = self._menus[node.id]
        return tuple(m for m in moves_of_all if m[0] not in self._retired) if self._retired else moves_of_all

    def _offers(self, proposer: Proposer, search: RegionSearch, node: Node) -> tuple[str, ...]:
        place = (search.item.region, self.target, node.kernel)
        if isinstance(proposer, PaidProposer):
            return proposer.menu(*place, search.bottleneck)
        return proposer.strategies(*place)

    def retire(self, proposer: str, why: str) -> bool:
        """The proposer offers nothing from now on; False when that was so already."""
        fresh = proposer not in self._retired
        self._retired.setdefault(proposer, why)
        return fresh

    def reinstate(self) -> None:
        """There is new budget: everybody may try again."""
        self._retired.clear()

    def win(self, search: RegionSearch, node: int) -> float:
        """What a judged kernel taught, in [0, 1]: 1 a new best, 0.5 better than its parent, else 0."""
        assert search.tree is not None
        judged = search.tree.nodes[node]
        if search.tree.best == node:
            return 1.0
        parent = search.tree.nodes[judged.parent] if judged.parent is not None else None
        better = parent and judged.twin is None and (judged.reward or 0.0) > (parent.reward or 0.0)
        return 0.5 if better else 0.0

    def choices(self, node: Node) -> tuple[Params, ...]:
        """Parameter combinations to race for a node's kernel; () when there are none or it is tuned."""
        if node.kernel is None or node.strategy == TUNE:
            return ()
        try:
            return combinations(parse(node.kernel.source).tunes, self.seed)
        except KernelSourceError:
            return ()

    def settled(self, kernel: Kernel) -> Kernel:
        """The kernel with every tune line's value written out (the first, where none was chosen)."""
        try:
            tunes = parse(kernel.source).tunes
        except KernelSourceError:
            return kernel  # the judge will say what is wrong with it
        return kernel.tuned(**{**{name: values[0] for name, values in tunes.items()}, **dict(kernel.params)})

    def twin_by_source(self, kernel: Kernel, node: int) -> int | None:
        """The earlier node with the same text; registers this one when there is none."""
        first = self._sources.setdefault(source_key(kernel), node)
        return first if first != node else None

    def forget(self, kernel: Kernel, node: int) -> None:
        """The node's judgement was abandoned: its text may be tried again."""
        if self._sources.get(source_key(kernel)) == node:
            del self._sources[source_key(kernel)]

    def twin_by_binary(self, kernel: Kernel, verdict: Verdict, node: int) -> int | None:
        """The earlier node with the same machine code and launches, also where the judge saw it first."""
        code = f"{kernel.region}/{verdict.binary_hash}"
        if verdict.status is Status.DUPLICATE:
            return self._binaries.get(code)
        key = binary_key(kernel, verdict)
        if key is None:
            return None
        self._binaries.setdefault(code, node)
        first = self._binaries.setdefault(f"{kernel.region}/{key}", node)
        return first if first != node else None

    def duplicate_of(self, search: RegionSearch, twin: int) -> Verdict:
        """A twin returns its twin's verdict, so that equal kernels never race each other's noise."""
        assert search.tree is not None
        known = search.tree.nodes[twin].verdict
        status = f" ({known.status.value})" if known else ""
        return Verdict(
            Status.DUPLICATE,
            f"the same kernel as node {twin}{status}",
            timing=known.timing if known else None,
        )

    def record(
        self,
        search: RegionSearch,
        action: Action | None,
        node: int,
        verdict: Verdict,
        twin: int | None = None,
    ) -> bool:
        """A verdict enters the tree and, when a policy's action led to it, the bandit. True: a new best."""
        tree = search.tree
        assert tree is not None
        before = search.remaining
        worth = reward.reward(verdict, search.headroom) if twin is None else tree.nodes[twin].reward
        new_best = tree.record(node, verdict, worth, twin)
        if new_best:
            search.improved(before)
        if action:
            self.bandit.learn(search.bottleneck, action.move, self.win(search, node))
        return new_best

    def fruitless(self, search: RegionSearch, action: Action) -> None:
        """An action that gave no kernel: never tried again, and a loss for its strategy."""
        assert search.tree is not None
        search.tree.spend(action)
        self.bandit.learn(search.bottleneck, action.move, 0.0)

    def _first_state(self, search: RegionSearch, wanted: Collection[str] | None) -> tuple[str, str]:
        item = search.item
        if wanted and search.hash not in wanted:
            return "off", "not among the regions asked for"
        if not item.eligible:
            return "ineligible", item.reason
        refusals = [p.refuses(item.region, self.target) for p in self.proposers.values()]
        if all(refusals) and not (self._memory and self._memory.known(item.region)):
            return "ineligible", "; ".join(dict.fromkeys(r for r in refusals if r)) or "nobody writes kernels"
        reason = search.stop_reason()
        return ("off", reason) if reason else ("waiting", "")
