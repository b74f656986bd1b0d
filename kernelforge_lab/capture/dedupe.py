"""Equal calls of a functional graph are computed once (every layer rebuilds the same attention mask)."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import fx

from .ops import Kind, kind_of


def merge_equal_calls(graph: fx.Graph) -> int:
    """Merge pure calls with equal operator and arguments, in place; returns how many went away.

    Left alone: random ops, and everything that leaves the graph directly or as a view. Two outputs
    that were two tensors must stay two, because the person may write into one of them.
    """
    leaving = _leaving(graph)
    known: dict[Hashable, fx.Node] = {}
    merged = 0
    for node in list(graph.nodes):
        if node in leaving or not _is_pure(node):
            continue
        key = (node.target, _key(node.args), _key(node.kwargs))
        try:
            first = known.setdefault(key, node)
        except TypeError:  # an argument that cannot be compared
            continue
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)
            merged += 1
    return merged


def _is_pure(node: fx.Node) -> bool:
    target = node.target
    if node.op != "call_function":
        return False
    if not isinstance(target, torch._ops.OpOverload):
        return target.__class__.__name__ == "builtin_function_or_method"  # operator.getitem
    if target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    return kind_of(str(target)) is not Kind.RANDOM and bool(target._schema.returns)


def _leaving(graph: fx.Graph) -> set[fx.Node]:
    waiting = [value for node in graph.nodes if node.op == "output" for value in node.all_input_nodes]
    found: set[fx.Node] = set()
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        if node.op == "call_function" and (
            not isinstance(node.target, torch._ops.OpOverload) or kind_of(str(node.target)) is Kind.VIEW
        ):
            waiting.extend(node.all_input_nodes)
    return found


def _key(arg: object) -> Hashable:
    if isinstance(arg, (list, tuple)):
        return tuple(map(_key, arg))
    if isinstance(arg, dict):
        return tuple((name, _key(value)) for name, value in arg.items())
    if isinstance(arg, (int, float)):  # 1, 1.0 and True are equal but not the same argument
        return type(arg), repr(arg)
    assert isinstance(arg, Hashable)
    return arg
