"""The tree of kernels tried for one region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ..judge.verdict import Status, Verdict
from ..kernels.kernel import Kernel

# Mostly the best thing below a node (we keep only one kernel in the end), a little of the mean, so that
# a subtree of failures with one lucky child is not mistaken for good ground.
_MAX_WEIGHT: Final = 0.7


@dataclass(frozen=True, slots=True)
class Action:
    """What to do next in a tree: expand ``parent`` with one strategy of one proposer."""

    parent: int
    proposer: str
    strategy: str

    @property
    def move(self) -> tuple[str, str]:
        return self.proposer, self.strategy


@dataclass
class Node:
    """A kernel with its verdict. The root has no kernel: it is stock.

    ``visits``, ``total`` and ``peak`` summarise the rewards of the node and everything judged below it.
    ``tried`` are the moves spent here, whether or not they gave a kernel. ``twin`` is the node that is
    the same kernel; such a node is never expanded. ``pruned``: a person closed it with all below it.
    """

    id: int
    parent: int | None
    kernel: Kernel | None
    proposer: str
    strategy: str
    epoch: int
    verdict: Verdict | None = None
    reward: float | None = None
    twin: int | None = None
    pruned: bool = False
    children: list[int] = field(default_factory=list)
    tried: set[tuple[str, str]] = field(default_factory=set)
    visits: int = 0
    total: float = 0.0
    peak: float = 0.0

    @property
    def value(self) -> float:
        if not self.visits:
            return 0.0
        return _MAX_WEIGHT * self.peak + (1 - _MAX_WEIGHT) * self.total / self.visits

    @property
    def is_open(self) -> bool:
        """Whether children may grow here: stock, or a kernel proven correct that has no twin."""
        if self.pruned:
            return False
        if self.kernel is None:
            return True
        return self.twin is None and self.verdict is not None and self.verdict.status.is_correct

    @property
    def speedup(self) -> float | None:
        """Of a proven kernel, against best stock."""
        timing = self.verdict.timing if self.verdict and self.verdict.status.is_correct else None
        return timing.speedup if timing else None


class Tree:
    """Nodes by id, the best one, and how long ago it was found. Node ids are unique in the whole run."""

    def __init__(self, root: int, stock_reward: float) -> None:
        self.root = root
        self.nodes: dict[int, Node] = {root: Node(root, None, None, "stock", "", 0)}
        self.epoch = 0
        self.restarts = 0
        self.best: int | None = None
        # A person wants the search to go on from here.
        self.pinned: int | None = None
        self.expansions = 0
        self.since_best = 0
        self.since_restart = 0
        self._credit(self.nodes[root], stock_reward)

    def add(self, node: int, parent: int, kernel: Kernel) -> Node:
        """A kernel enters the tree; its verdict comes later by ``record``."""
        added = Node(node, parent, kernel, kernel.proposer, kernel.strategy, self.epoch)
        self.nodes[node] = added
        self.nodes[parent].children.append(node)
        return added

    def record(self, node: int, verdict: Verdict, reward: float | None, twin: int | None = None) -> bool:
        """Give a node its verdict and reward and tell its ancestors. True when it is a new best.

        A reward of None (impossible, quarantined) is never backed up.
        """
        child = self.nodes[node]
        assert child.verdict is None, "a node is judged once; use rejudge"
        child.verdict, child.reward, child.twin = verdict, reward, twin
        assert child.parent is not None
        self.spend(Action(child.parent, child.proposer, child.strategy))
        if reward is not None:
            at: Node | None = child
            while at is not None:
                self._credit(at, reward)
                at = self.nodes[at.parent] if at.parent is not None else None
        return self._count(child)

    def rejudge(self, node: int, verdict: Verdict) -> None:
        """Replace the verdict by a stricter one (a finalist's). Rewards stay as the search saw them."""
        self.nodes[node].verdict = verdict

    def spend(self, action: Action) -> None:
        """The move is used up at its parent, also when the proposer had no answer."""
        self.nodes[action.parent].tried.add(action.move)

    def restart(self) -> None:
        """Clean slate: older nodes stay to be seen, but selection starts again from stock alone."""
        self.epoch += 1
        self.restarts += 1
        self.since_restart = 0
        root = self.nodes[self.root]
        assert root.reward is not None
        root.visits, root.total, root.peak = 0, 0.0, 0.0
        self._credit(root, root.reward)

    def children(self, node: int, every_epoch: bool = False) -> Iterator[Node]:
        """Judged children that selection sees: of this epoch (or of all), neither quarantined nor pruned."""
        for child in self.nodes[node].children:
            found = self.nodes[child]
            seen = every_epoch or node != self.root or found.epoch == self.epoch
            if found.reward is not None and seen and not found.pruned:
                yield found

    def ancestors(self, node: int) -> Iterator[int]:
        """The node itself, then its parents up to the root."""
        at: int | None = node
        while at is not None:
            yield at
            at = self.nodes[at].parent

    def ranked(self) -> list[Node]:
        """Proven kernels without twins, fastest first."""
        proven = [n for n in self.nodes.values() if n.kernel and n.twin is None and n.speedup is not None]
        return sorted(proven, key=lambda n: (-(n.speedup or 0.0), n.id))

    def _credit(self, node: Node, reward: float) -> None:
        if node.id == self.root and node.reward is None:
            node.reward = reward
        node.visits += 1
        node.total += reward
        node.peak = max(node.peak, reward)

    def _count(self, child: Node) -> bool:
        self.expansions += 1
        self.since_best += 1
        self.since_restart += 1
        proven = child.verdict is not None and child.verdict.status is Status.FASTER and child.twin is None
        record = self.nodes[self.best].speedup if self.best is not None else 1.0
        if not proven or child.speedup is None or child.speedup <= (record or 1.0):
            return False
        self.best = child.id
        self.since_best = self.since_restart = 0
        return True
