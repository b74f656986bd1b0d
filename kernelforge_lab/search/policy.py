"""Which kernel to try next in a region's tree: a pure function, so that runs replay exactly."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

from .bandit import Bandit, Move
from .tree import Action, Node, Tree

# Exploit-heavy trees won on H100 (search.md); rewards lie in [0, 1].
_EXPLORATION: Final = 0.35

# Progressive widening: children < k·sqrt(visits). The root is wide, because that is where different
# kernels (not refinements of one) come from.
_WIDTH_ROOT: Final = 3.0
_WIDTH: Final = 1.0

# Expansions without a new best before the search starts again from stock.
RESTART_AFTER: Final = 8

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
    they count as visits without a value (WU-UCT), so that parallel proposals spread out. A pinned node
    comes before everything else as long as something is left to try below it. When the
    current epoch has nothing more to offer, what earlier ones left untried is taken up again.
    """
    choice = _Choice(tree, menu, bandit, bottleneck, seed=seed, in_flight=in_flight)
    root = tree.nodes[tree.root]
    if tree.pinned is not None and (below := choice.from_node(tree.nodes[tree.pinned])):
        return below
    action = choice.from_node(root)
    if action is None and tree.epoch:
        choice.every_epoch = True
        action = choice.from_node(root)
    return action


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
        self.every_epoch = False
        self.tree, self.menu, self.bandit, self.bottleneck = tree, menu, bandit, bottleneck
        self.flying = Counter(action.parent for action in in_flight)
        self.below: Counter[int] = Counter()
        for action in in_flight:
            self.below.update(tree.ancestors(action.parent))
        self.taken = {(action.parent, action.move) for action in in_flight}
        # One stream per decision: ties fall differently each time, and the same way in a replay.
        self.random = random.Random(f"{seed}/{tree.root}/{tree.expansions}/{len(in_flight)}")

    def from_node(self, node: Node) -> Action | None:
        """Expand here while the node may widen, else go to the best child; the other way round if stuck."""
        expansion = self.expansion(node) if node.is_open else None
        children = list(self.tree.children(node.id, self.every_epoch))
        width = _WIDTH_ROOT if node.id == self.tree.root else _WIDTH
        visits = node.visits + self.below[node.id]
        if expansion and len(children) + self.flying[node.id] < width * math.sqrt(visits):
            return expansion
        for child in self.by_score(visits, children):
            found = self.from_node(child)
            if found:
                return found
        return expansion

    def expansion(self, node: Node) -> Action | None:
        moves = self.menu(node)
        best: tuple[float, float, Move] | None = None
        for rank, move in enumerate(moves):
            if move in node.tried or (node.id, move) in self.taken:
                continue
            scored = (self.bandit.mean(self.bottleneck, move, rank), self.random.random(), move)
            best = max(best, scored) if best else scored
        return Action(node.id, *best[2]) if best else None

    def by_score(self, visits: int, children: list[Node]) -> list[Node]:
        """Children by PUCT, best first."""
        priors = self.bandit.priors(self.bottleneck, [(c.proposer, c.strategy) for c in children])
        scored = []
        for child, prior in zip(children, priors, strict=True):
            seen = child.visits + self.below[child.id]
            bonus = _EXPLORATION * prior * math.sqrt(visits) / (1 + seen)
            scored.append((-(child.value + bonus), self.random.random(), child.id))
        return [self.tree.nodes[node] for _, _, node in sorted(scored)]
