"""Which kernel to try next in a region's tree: a pure function, so that runs replay exactly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

from .bandit import Bandit, Move
from .tree import Action, Node, Tree

# How branching adapts (AB-MCTS, arXiv 2503.04412): every open node competes with what its next child is
# believed to be worth, its own reward. Each move spent there makes it a little less attractive, so that
# a node is widened as long as it is better than everything below it, and left when it is not.
# Exploit-heavy trees won on H100 (search.md); these weights won on benchmarks/search.py's landscapes.
_FADE: Final = 0.01
_TRUST: Final = 0.3

# The root is widened first, because that is where different kernels (not refinements of one) come from;
# after so many starting points a further one has to compete with what an average start is worth.
_STARTS: Final = 5
_FRESH: Final = 0.7

# Expansions without a new best before the search starts again from stock.
RESTART_AFTER: Final = 16

Menu = Callable[[Node], Sequence[Move]]


def choose(
    tree: Tree,
    menu: Menu,
    bandit: Bandit,
    bottleneck: str,
    *,
    seed: int = 0,
    in_flight: Collection[Action] = (),
) -> Action | None:
    """The next action, or None when nothing is left to try from here.

    ``menu`` lists every move of a node, most promising first (it must be pure, too); moves already
    tried or in flight are left out here. ``in_flight`` are the actions chosen and not recorded yet:
    they count as spent moves without a value (WU-UCT), so that parallel proposals spread out. A pinned
    node comes before everything else as long as something is left to try below it. After a restart the
    next kernel comes from stock; older ground stays open (forgetting it was worse on every landscape).
    """
    choice = _Choice(tree, menu, bandit, bottleneck, seed=seed, in_flight=in_flight)
    if tree.pinned is not None and (below := choice.from_node(tree.nodes[tree.pinned])):
        return below
    return choice.from_node(tree.nodes[tree.root])


def needs_restart(tree: Tree, menu: Menu) -> bool:
    """Whether to start again from stock: nothing better for long, and stock has moves left to make."""
    root = tree.nodes[tree.root]
    return tree.since_restart >= RESTART_AFTER and any(move not in root.tried for move in menu(root))


class _Choice:
    def __init__(
        self,
        tree: Tree,
        menu: Menu,
        bandit: Bandit,
        bottleneck: str,
        *,
        seed: int,
        in_flight: Collection[Action],
    ) -> None:
        self.tree, self.menu, self.bandit, self.bottleneck = tree, menu, bandit, bottleneck
        self.flying = Counter(action.parent for action in in_flight)
        self.taken = {(action.parent, action.move) for action in in_flight}
        # One stream per decision: ties fall differently each time, and the same way in a replay.
        self.random = random.Random(f"{seed}/{tree.root}/{tree.expansions}/{len(in_flight)}")

    def from_node(self, top: Node) -> Action | None:
        """The best move of any open node at or below ``top``.

        PUCT with the square root of visits as width, tried before, shares its trials out too evenly: a
        beam of four was better from 25 kernels on (benchmarks/search.py).
        """
        best: tuple[float, float, Action] | None = None
        waiting = [top]
        while waiting:
            node = waiting.pop()
            waiting += self.tree.children(node.id, every_epoch=True)
            found = self.expansion(node) if node.is_open else None
            if found is not None:
                trust, action = found
                scored = (self.worth(node) + _TRUST * trust, self.random.random(), action)
                best = scored if best is None or scored[:2] > best[:2] else best
        return best[2] if best else None

    def worth(self, node: Node) -> float:
        """What a child of the node is believed to be worth, before its move is looked at."""
        spent = len(node.tried) + self.flying[node.id]
        if node.id == self.tree.root:
            wanted = spent < _STARTS or (self.tree.epoch and not list(self.tree.children(node.id)))
            return 1.0 + _FRESH if wanted else _FRESH
        return (node.reward or 0.0) - _FADE * spent

    def expansion(self, node: Node) -> tuple[float, Action] | None:
        """The untried move that the bandit trusts most, with that trust; None when all are tried."""
        best: tuple[float, float, Move] | None = None
        for rank, move in enumerate(self.menu(node)):
            if move in node.tried or (node.id, move) in self.taken:
                continue
            scored = (self.bandit.mean(self.bottleneck, move, rank), self.random.random(), move)
            best = max(best, scored) if best else scored
        return (best[0], Action(node.id, *best[2])) if best else None
