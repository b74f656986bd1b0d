"""Is our tree search better than what one would do without it? On landscapes where the truth is known.

    python benchmarks/search.py [LANDSCAPES]     # without a number, writes benchmarks/results/search/

Ours is the product's own code (policy, tree, bandit, reward). It is compared with repeated random
sampling, a beam, and UCT on raw milliseconds, each given the same moves. A policy's result at N is the
true speed-up of the kernel that it measured fastest within N trials. Ours is also run with all times
multiplied by 1000, which must change nothing.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
from landscapes import BROKEN, STOCK, STOCK_US, Landscape, Point

from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.search import policy, reward
from kernelforge_lab.search.bandit import Bandit, Move
from kernelforge_lab.search.tree import Node, Tree

RESULTS = Path(__file__).parent / "results" / "search"
BUDGETS = (10, 25, 50, 100)
TRIALS = max(BUDGETS)

# A search: yields the point of every trial with its measured time (None: it failed).
Trials = Iterator[tuple[Point, float | None]]
Search = Callable[[Landscape, int, float], Trials]


def ours(land: Landscape, seed: int, unit: float = 1.0) -> Trials:
    """The product's policy, one proposal at a time."""
    tree, bandit = Tree(0, reward.of_speedup(1.0, 4.0)), Bandit()
    points: dict[int, Point] = {0: STOCK}
    first: dict[int, int] = {}

    def menu(node: Node) -> tuple[Move, ...]:
        return land.menu(points[node.id])

    for number in range(1, TRIALS + 1):
        if policy.needs_restart(tree, menu):
            tree.restart()
        action = policy.choose(tree, menu, bandit, "memory", seed=seed)
        if action is None:
            return
        point = points[number] = land.child(points[action.parent], action.move)
        time_us = land.measured_us(point, number, unit) if point.works else None
        tree.add(number, action.parent, Kernel(str(point.identity), "", "cpu", (), *action.move))
        twin = first.setdefault(point.identity, number)
        verdict = _verdict(point, time_us, unit)
        worth = reward.reward(verdict, 4.0)
        parent_worth = tree.nodes[action.parent].reward or 0.0
        if twin != number:
            worth = tree.nodes[twin].reward
        best = tree.record(number, verdict, worth, twin if twin != number else None)
        better = twin == number and (worth or 0.0) > parent_worth
        bandit.learn("memory", action.move, 1.0 if best else 0.5 if better else 0.0)
        yield point, time_us


def _verdict(point: Point, time_us: float | None, unit: float) -> Verdict:
    if time_us is None:
        return Verdict(Status.COMPILE_ERROR if point.latent == BROKEN else Status.WRONG)
    stock = STOCK_US * unit
    ratio = stock / time_us
    status = Status.FASTER if ratio > 1.02 else Status.SLOWER
    return Verdict(status, timing=Timing(time_us, "eager", stock, ratio, ratio * 0.98, ratio * 1.02, 40))


def random_sampling(land: Landscape, seed: int, unit: float = 1.0) -> Trials:
    """The templates, then again and again a random move at the best kernel of a random family."""
    luck = random.Random(f"random/{seed}")
    known: list[Point] = [STOCK]
    for number in range(TRIALS):
        parent = luck.choice(known)
        yield _try(land, parent, luck, number=number, unit=unit, known=known)


def beam(land: Landscape, seed: int, unit: float = 1.0, width: int = 4) -> Trials:
    """The best four kernels, each refined by two random moves a round."""
    luck = random.Random(f"beam/{seed}")
    known: list[tuple[float, Point]] = []
    number = 0
    for move in land.menu(STOCK):
        point = land.child(STOCK, move)
        time_us = land.measured_us(point, number, unit) if point.works else None
        number += 1
        if time_us is not None:
            known.append((time_us, point))
        yield point, time_us
    while number < TRIALS:
        best = sorted(known, key=lambda pair: pair[0])[:width]
        if not best:
            return
        for _, parent in best:
            for move in luck.sample(land.menu(parent), 2):
                if number == TRIALS:
                    return
                point = land.child(parent, move, number)
                time_us = land.measured_us(point, number, unit) if point.works else None
                number += 1
                if time_us is not None and point.identity not in {p.identity for _, p in known}:
                    known.append((time_us, point))
                yield point, time_us


def _try(
    land: Landscape, parent: Point, luck: random.Random, *, number: int, unit: float, known: list[Point]
) -> tuple[Point, float | None]:
    point = land.child(parent, luck.choice(land.menu(parent)), number)
    time_us = land.measured_us(point, number, unit) if point.works else None
    if time_us is not None and point not in known:
        known.append(point)
    return point, time_us


@dataclass
class _Uct:
    point: Point
    parent: _Uct | None = None
    visits: int = 0
    total: float = 0.0
    children: list[_Uct] = field(default_factory=list)


def uct_on_milliseconds(land: Landscape, seed: int, unit: float = 1.0) -> Trials:
    """UCT with c = √2 and the negative time in ms as reward, failures as a second; progressive widening."""
    luck = random.Random(f"uct/{seed}")
    root = _Uct(STOCK, visits=1, total=-STOCK_US * unit / 1e3)
    for number in range(TRIALS):
        node = root
        while len(node.children) >= 2 * math.sqrt(node.visits) or (node.children and not node.point.works):
            node = max(
                node.children,
                key=lambda c, n=node: c.total / c.visits + math.sqrt(2 * math.log(n.visits) / c.visits),
            )
            if not node.point.works:
                break
        if not node.point.works:
            node = node.parent or root
        point = land.child(node.point, luck.choice(land.menu(node.point)), number)
        time_us = land.measured_us(point, number, unit) if point.works else None
        child = _Uct(point, node)
        node.children.append(child)
        value = -time_us / 1e3 if time_us is not None else -1.0
        at: _Uct | None = child
        while at is not None:
            at.visits += 1
            at.total += value
            at = at.parent
        yield point, time_us


SEARCHES: dict[str, Search] = {
    "kernelforge": ours,
    "random sampling": random_sampling,
    "beam": beam,
    "UCT on ms": uct_on_milliseconds,
}


def best_at(search: Search, land: Landscape, seed: int, unit: float = 1.0) -> list[float]:
    """True speed-up of the kernel measured fastest, after each trial."""
    best_us, chosen, curve = STOCK_US * unit, STOCK, []
    for point, time_us in search(land, seed, unit):
        if time_us is not None and time_us < best_us:
            best_us, chosen = time_us, point
        curve.append(math.exp(chosen.latent))
    return curve + [curve[-1]] * (TRIALS - len(curve))


def compare(landscapes: int) -> dict[str, Any]:
    curves = {name: [best_at(s, Landscape(i), i) for i in range(landscapes)] for name, s in SEARCHES.items()}
    scaled = [best_at(ours, Landscape(i), i, unit=1000.0) for i in range(landscapes)]
    return {
        "landscapes": landscapes,
        "invariant": scaled == curves["kernelforge"],
        "median": {
            name: [round(median(c[n] for c in found), 4) for n in range(TRIALS)]
            for name, found in curves.items()
        },
        "quartiles": {
            name: {str(n): _quartiles([c[n - 1] for c in found]) for n in BUDGETS}
            for name, found in curves.items()
        },
        "wins": {
            name: {
                str(n): round(
                    sum(a[n - 1] > b[n - 1] for a, b in zip(curves["kernelforge"], found, strict=True))
                    / landscapes,
                    3,
                )
                for n in BUDGETS
            }
            for name, found in curves.items()
            if name != "kernelforge"
        },
    }


def _quartiles(values: list[float]) -> list[float]:
    ranked = sorted(values)
    return [round(ranked[len(ranked) * q // 4], 4) for q in (1, 2, 3)]


def chart(result: dict[str, Any]) -> alt.Chart:
    rows = [
        {"search": name, "trials": n + 1, "speed-up": value}
        for name, values in result["median"].items()
        for n, value in enumerate(values)
    ]
    lines: alt.Chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("trials:Q", title="kernels judged"),
            y=alt.Y(
                "speed-up:Q", title="median true speed-up of the best kernel", scale=alt.Scale(zero=False)
            ),
            color=alt.Color("search:N", sort=list(SEARCHES)),
        )
        .properties(width=560, height=320, title=f"{result['landscapes']} synthetic landscapes")
    )
    return lines


def main() -> None:
    result = compare(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
    for name, values in result["median"].items():
        print(f"{name:16}", "  ".join(f"@{n}: {values[n - 1]:.3f}" for n in BUDGETS))
    print("invariant to the time unit:", result["invariant"])
    if len(sys.argv) == 1:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "search.json").write_text(json.dumps(result, indent=1) + "\n")
        chart(result).save(str(RESULTS / "search.svg"))


if __name__ == "__main__":
    main()
