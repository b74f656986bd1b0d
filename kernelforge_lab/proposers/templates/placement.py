"""Where in a loop nest each subexpression is computed, and what gets a name.

Depth 0 is the row, depth k the body of the k-th inner loop. A subexpression belongs to the depth of
the deepest loop variable it reads, so that what does not change along a row is computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .expr import Expr
from .index import Var

# Printed in place, never named: they cost nothing.
_TRIVIAL = ("const", "row", "index")


@dataclass
class Placement:
    """``lets[d]``: expressions to name at depth d, in order. ``lane_lets[d]``: the same, one per lane."""

    lets: list[list[Expr]]
    lane_lets: list[list[Expr]]
    named: set[int]


def place(roots: Sequence[Expr], loops: Sequence[Var], lane: str | None, *, flat: bool = False) -> Placement:
    """``flat``: the loops are walked as one (a thread's share of them), so there is one depth only."""
    levels = min(len(loops), 1) if flat else len(loops)
    depth_of = {v.name: min(k + 1, levels) for k, v in enumerate(loops)}
    depth: dict[int, int] = {}
    laned: dict[int, bool] = {}
    order: list[Expr] = []
    uses: Counter[int] = Counter()
    highest: dict[int, int] = {}
    seen: set[int] = set()
    for root in roots:
        for node in root.walk():
            if id(node) in seen:
                continue
            seen.add(id(node))
            order.append(node)
            names = {v.name for a in node.affines() for v in a.variables()} if node.op != "row" else set()
            depth[id(node)] = max(
                [depth_of.get(n, 0) for n in names] + [depth[id(x)] for x in node.args], default=0
            )
            laned[id(node)] = (lane is not None and (lane in names or node.op == "row")) or any(
                laned[id(x)] for x in node.args
            )
            for x in node.args:
                uses[id(x)] += 1
                highest[id(x)] = max(highest.get(id(x), 0), depth[id(node)])
    for root in roots:
        uses[id(root)] += 1
        highest[id(root)] = levels
    lets: list[list[Expr]] = [[] for _ in range(levels + 1)]
    lane_lets: list[list[Expr]] = [[] for _ in range(levels + 1)]
    named: set[int] = set()
    for node in order:
        if node.op in _TRIVIAL:
            continue
        here = depth[id(node)]
        moved = highest.get(id(node), here) > here
        if not moved and uses[id(node)] < 2:
            continue
        if laned[id(node)] and here < levels:
            # Per lane but not per element: an array of lanes, unless it is a plain load.
            if node.op == "load":
                continue
            lane_lets[here].append(node)
        else:
            lets[here].append(node)
        named.add(id(node))
    return Placement(lets, lane_lets, named)


def reads(roots: Iterable[Expr]) -> set[str]:
    """Names of the buffers read below the roots."""
    return {n.attr[0] for root in roots for n in root.walk() if n.op == "load"}
