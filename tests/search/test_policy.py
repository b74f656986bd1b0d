"""The policy: pure, unit-free, widening slowly, spreading parallel work."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.search.bandit import Bandit, Move
from kernelforge_lab.search.policy import choose
from kernelforge_lab.search.reward import of_speedup, reward
from kernelforge_lab.search.tree import Action, Node, Tree

HEADROOM = 4.0
MOVES: tuple[Move, ...] = tuple(("templates", f"s{i}") for i in range(12))


def menu(node: Node) -> Sequence[Move]:
    return MOVES


def verdict(speedup: float, unit: float = 1.0) -> Verdict:
    status = Status.FASTER if speedup > 1 else Status.SLOWER
    timing = Timing(unit * 100 / speedup, "eager", unit * 100, speedup, speedup, speedup, 40)
    return Verdict(status, timing=timing)


def fresh() -> Tree:
    return Tree(0, of_speedup(1.0, HEADROOM))


def grow(tree: Tree, action: Action, answer: Verdict) -> int:
    node = max(tree.nodes) + 1
    tree.add(node, action.parent, Kernel("", "r", "cpu", proposer=action.proposer, strategy=action.strategy))
    tree.record(node, answer, reward(answer, HEADROOM))
    return node


def search(trials: int, seed: int, unit: float = 1.0) -> tuple[Tree, list[Action]]:
    tree, bandit, actions = fresh(), Bandit(), []
    landscape = random.Random(7)
    for _ in range(trials):
        action = choose(tree, menu, bandit, "memory", seed=seed)
        assert action is not None
        speedup = landscape.choice([0.5, 0.9, 1.1, 1.5, 2.2, 3.0])
        answer = verdict(speedup, unit) if landscape.random() < 0.7 else Verdict(Status.WRONG)
        before = tree.best
        grow(tree, action, answer)
        bandit.learn("memory", action.move, 1.0 if tree.best != before else 0.0)
        actions.append(action)
    return tree, actions


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 9))
def test_multiplying_all_times_by_a_thousand_changes_nothing(trials: int, seed: int) -> None:
    tree, actions = search(trials, seed)
    scaled_tree, scaled_actions = search(trials, seed, unit=1000.0)
    assert scaled_actions == actions
    assert [(n.id, n.parent, n.reward, n.visits, n.value) for n in tree.nodes.values()] == [
        (n.id, n.parent, n.reward, n.visits, n.value) for n in scaled_tree.nodes.values()
    ]


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(0, 9))
def test_choosing_changes_nothing_and_repeats(trials: int, seed: int) -> None:
    tree, _ = search(trials, seed)
    flying = [Action(0, *MOVES[11])]
    shape = repr(tree.nodes)
    first = choose(tree, menu, Bandit(), "memory", seed=seed, in_flight=flying)
    assert first == choose(tree, menu, Bandit(), "memory", seed=seed, in_flight=flying)
    assert repr(tree.nodes) == shape


def test_five_starts_come_first_and_then_the_better_of_new_starts_and_good_ground() -> None:
    for speedup, next_parent in ((3.9, 5), (0.6, 0)):
        tree = fresh()
        for _ in range(4):
            action = choose(tree, menu, Bandit(), "memory")
            assert action is not None and action.parent == 0
            grow(tree, action, verdict(0.6))
        fifth = choose(tree, menu, Bandit(), "memory")
        assert fifth is not None and fifth.parent == 0
        assert grow(tree, fifth, verdict(speedup)) == 5
        sixth = choose(tree, menu, Bandit(), "memory")
        assert sixth is not None and sixth.parent == next_parent


def test_a_node_is_widened_while_it_is_better_than_what_grows_below_it() -> None:
    tree = fresh()
    good = grow(tree, Action(0, *MOVES[0]), verdict(3.0))
    for move in MOVES[1:5]:
        grow(tree, Action(0, *move), verdict(0.6))
    for _ in range(3):
        action = choose(tree, menu, Bandit(), "memory")
        assert action is not None and action.parent == good
        grow(tree, action, verdict(1.2))
    action = choose(tree, menu, Bandit(), "memory")
    assert action is not None
    better = grow(tree, action, verdict(3.9))
    action = choose(tree, menu, Bandit(), "memory")
    assert action is not None and action.parent == better


def test_after_a_restart_the_next_kernel_comes_from_stock() -> None:
    tree = fresh()
    for move in MOVES[:6]:
        grow(tree, Action(0, *move), verdict(3.9))
    tree.restart()
    action = choose(tree, menu, Bandit(), "memory")
    assert action is not None and action.parent == 0
    grow(tree, action, verdict(0.6))
    action = choose(tree, menu, Bandit(), "memory")
    assert action is not None and action.parent != 0


def test_a_failed_kernel_is_never_expanded() -> None:
    tree = fresh()
    failed = grow(tree, Action(0, *MOVES[0]), Verdict(Status.COMPILE_ERROR))
    for _ in range(30):
        action = choose(tree, menu, Bandit(), "memory")
        assert action is not None and action.parent != failed
        grow(tree, action, verdict(0.6))


def test_better_ground_is_dug_deeper() -> None:
    tree = fresh()
    good = grow(tree, Action(0, *MOVES[0]), verdict(3.0))
    poor = grow(tree, Action(0, *MOVES[1]), verdict(0.6))
    grow(tree, Action(0, *MOVES[2]), verdict(0.6))
    for _ in range(30):
        action = choose(tree, menu, Bandit(), "memory")
        assert action is not None
        grow(tree, action, verdict(1.2))
    assert tree.nodes[good].visits > 2 * tree.nodes[poor].visits


def test_no_move_is_made_twice_not_even_in_parallel() -> None:
    tree, flying = fresh(), []
    while (action := choose(tree, menu, Bandit(), "memory", in_flight=flying)) is not None:
        flying.append(action)
    assert len(flying) == len(set(flying)) == len(MOVES)


def test_parallel_work_spreads_over_good_children() -> None:
    tree = fresh()
    first, second = (grow(tree, Action(0, *move), verdict(2.0)) for move in MOVES[:2])

    def children_only(node: Node) -> Sequence[Move]:
        return MOVES if node.id else MOVES[:2]

    flying: list[Action] = []
    for _ in range(4):
        action = choose(tree, children_only, Bandit(), "memory", in_flight=flying)
        assert action is not None
        flying.append(action)
    assert {action.parent for action in flying} == {first, second}


def test_an_impossible_kernel_leaves_no_trace_in_values() -> None:
    tree = fresh()
    before = (tree.nodes[0].visits, tree.nodes[0].value)
    timing = Timing(0.001, "eager", 100.0, 1e5, 1e5, 1e5, 40)
    grow(tree, Action(0, *MOVES[0]), Verdict(Status.IMPOSSIBLE, timing=timing))
    assert (tree.nodes[0].visits, tree.nodes[0].value) == before
    assert tree.best is None
    assert MOVES[0] in tree.nodes[0].tried


def test_a_restart_forgets_values_but_not_kernels() -> None:
    tree, _ = search(12, 0)
    best, size = tree.best, len(tree.nodes)
    tree.restart()
    assert tree.best == best and len(tree.nodes) == size
    assert tree.nodes[0].visits == 1 and not list(tree.children(0))


def test_a_value_is_mostly_the_best_below_and_a_little_the_mean() -> None:
    tree = Tree(0, 0.4)
    tree.add(1, 0, Kernel("", "r", "cpu"))
    tree.record(1, verdict(2.0), 0.8)
    assert tree.nodes[0].value == pytest.approx(0.7 * 0.8 + 0.3 * 0.6)


def test_twins_do_not_become_the_best() -> None:
    tree = fresh()
    grow(tree, Action(0, *MOVES[0]), verdict(1.5))
    tree.add(9, 0, Kernel("", "r", "cpu", strategy="other"))
    assert not tree.record(9, verdict(1.6), 0.9, twin=1)
    assert tree.best == 1 and [n.id for n in tree.ranked()] == [1]


def test_experience_of_one_region_serves_the_next() -> None:
    bandit = Bandit()
    for _ in range(4):
        bandit.learn("memory", MOVES[0], 0.0)
        bandit.learn("memory", MOVES[5], 1.0)
    action = choose(fresh(), menu, bandit, "memory")
    assert action is not None and action.move == MOVES[5]
    other = choose(fresh(), menu, bandit, "compute")
    assert other is not None and other.move == MOVES[0]
