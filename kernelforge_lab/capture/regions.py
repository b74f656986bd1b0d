"""The level rule: which nodes of a functional ATen graph form a region. Linear time.

``level(n)`` is the largest level among n's inputs, plus one for every input that is heavy. Fusible nodes
joined by a data edge (looking through views) on the same level are one region: a path that leaves a
region through a heavy node comes back on a higher level, so regions are convex by construction.

Two kinds of node belong to nobody and are cloned into whoever reads them: views, and *sinkable* nodes
(casts, ``1 + weight``, ``arange``: cheap functions of parameters and constants only).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import torch
from torch import fx

from ..kernels.region import Arg, Ref, Symbol
from .ops import FUSIBLE, Fusible, Kind, is_known_heavy, kind_of
from .specs import unsupported

# A sinkable node with several readers is computed once per reader, so it must be small and shallow.
_SINK_NUMEL: Final = 1 << 16
_SINK_DEPTH: Final = 4
_SINKS: Final = frozenset({Fusible.POINTWISE, Fusible.CREATION, Fusible.SHAPE})


@dataclass
class Cut:
    """The partition of one graph.

    ``kind`` of every call node; ``group`` names the region of a fusible node by a representative;
    ``sinkable`` nodes have no group; ``origin`` is the fusible node that a value is, is a result of or
    is a view of (absent or None: none); ``after`` is the random call that must have run before this one;
    ``kept`` says why a node of a fusible operator stays on PyTorch.
    """

    kind: dict[fx.Node, Kind]
    group: dict[fx.Node, fx.Node]
    sinkable: set[fx.Node]
    origin: dict[fx.Node, fx.Node | None]
    order: dict[fx.Node, int]
    kept: dict[fx.Node, str]
    after: dict[fx.Node, fx.Node]

    def members(self) -> dict[fx.Node, list[fx.Node]]:
        """Region representative → its nodes in graph order."""
        groups: dict[fx.Node, list[fx.Node]] = {}
        for node, head in self.group.items():
            groups.setdefault(head, []).append(node)
        return groups


def cut(graph: fx.Graph, static: Iterable[fx.Node], device: str, *, by_op: bool = False) -> Cut:
    """Partition ``graph``; ``static`` are the placeholders that hold parameters and buffers.

    ``device`` is the torch device type regions must live on. ``by_op`` makes every call its own region
    (heavy ones included, where they can be described at all).
    """
    order = {node: i for i, node in enumerate(graph.nodes)}
    fixed = set(static)
    result = Cut({}, {}, set(), {}, order, {}, {})
    level: dict[fx.Node, int] = {}
    depth: dict[fx.Node, int] = {}
    root: dict[fx.Node, fx.Node] = {}
    draws: list[fx.Node] = []
    for node in graph.nodes:
        if node.op == "get_attr":
            fixed.add(node)
        if node.op != "call_function":
            level[node] = 0
            continue
        inputs = node.all_input_nodes
        kind, reason = _classify(node, result.kind, device, by_op)
        result.kind[node] = kind
        if reason is not None:
            result.kept[node] = reason
        waits = (Kind.HEAVY, Kind.RANDOM)
        is_item = node.target is operator.getitem
        level[node] = max(
            (level[i] + (result.kind.get(i) in waits and not is_item) for i in inputs), default=0
        )
        if kind is Kind.RANDOM and not is_item:  # draws stay in the model's order: each waits for the last
            if draws:
                level[node] = max(level[node], level[draws[-1]] + 1)
                result.after[node] = draws[-1]
            draws.append(node)
        if kind is Kind.VIEW or (is_item and kind is Kind.FUSIBLE):
            result.origin[node] = result.origin.get(inputs[0])
            if inputs[0] in fixed:
                fixed.add(node)
            continue
        if kind is not Kind.FUSIBLE:
            continue
        result.origin[node] = node
        if by_op:
            root[node] = node
            continue
        if _sinks(node, fixed, depth, result):
            result.sinkable.add(node)
            fixed.add(node)
            continue
        root[node] = node
        for value in inputs:
            source = result.origin.get(value)
            if source in root and level[source] == level[node]:
                root[_find(root, source)] = _find(root, node)
    result.group = {node: _find(root, node) for node in root}
    return result


def _find(root: dict[fx.Node, fx.Node], node: fx.Node) -> fx.Node:
    while root[node] is not node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def _classify(node: fx.Node, kinds: dict[fx.Node, Kind], device: str, by_op: bool) -> tuple[Kind, str | None]:
    if node.target is operator.getitem:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        return kinds.get(source, Kind.HEAVY), None
    if not isinstance(node.target, torch._ops.OpOverload):
        return Kind.HEAVY, None
    target = str(node.target)
    kind = kind_of(target)
    seeded = torch.Tag.nondeterministic_seeded in node.target.tags
    if kind is Kind.RANDOM or (seeded and not is_known_heavy(target)):  # attention only seeds its dropout
        return Kind.RANDOM, None
    if kind is Kind.VIEW:
        return kind, None
    if kind is Kind.HEAVY and not (by_op and not node.target._schema.is_mutable):
        return kind, None
    reason = _undescribable(node, device)
    if reason is None:
        return Kind.FUSIBLE, None
    return Kind.HEAVY, reason if kind is Kind.FUSIBLE else None


# Batch norms that both train and infer; the cuDNN one is what eager calls on a GPU.
_EITHER_MODE = ("aten.native_batch_norm.default", "aten.cudnn_batch_norm.default")


def _undescribable(node: fx.Node, device: str) -> str | None:
    """Why a fusible operator's call cannot be part of a region, or None."""
    target = str(node.target)
    if target in _EITHER_MODE and node.args[5] is not False:
        return "batch norm in training mode updates its statistics"
    outs = node.meta.get("val")
    values = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    if isinstance(outs, (tuple, list)):
        used = {user.args[1] for user in node.users if user.target is operator.getitem}
        values = [value for k, value in enumerate(values) if k in used]
    for value in (*values, *(i.meta.get("val") for i in node.all_input_nodes)):
        if isinstance(value, (tuple, list)):
            continue
        reason = unsupported(value)
        if reason is not None:
            return reason
        assert isinstance(value, torch.Tensor)
        if value.device.type != device:
            return f"device {value.device.type}"
    try:
        for arg in (*node.args, *node.kwargs.values()):
            as_arg(arg, lambda _: Ref(""))
    except TypeError as error:
        return str(error)
    return None


def _sinks(node: fx.Node, fixed: set[fx.Node], depth: dict[fx.Node, int], so_far: Cut) -> bool:
    if FUSIBLE.get(str(node.target)) not in _SINKS:
        return False
    if any(value not in fixed for value in node.all_input_nodes):
        return False
    sources = {so_far.origin.get(value) for value in node.all_input_nodes}
    depth[node] = 1 + sum(depth.get(s, 0) for s in sources if s is not None)
    if depth[node] > _SINK_DEPTH:
        return False
    value = node.meta["val"]
    return len(node.users) == 1 or value.numel() <= _SINK_NUMEL


_CONSTANTS: Final = {
    torch.dtype: "dtype",
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}


def as_arg(arg: object, name: object) -> Arg:
    """An fx argument as region data; ``name(node)`` gives the Ref of a node.

    Raises TypeError for what a region cannot say (complex numbers, symbolic sizes, graph modules).
    """
    if isinstance(arg, fx.Node):
        ref: Arg = name(arg)  # type: ignore[operator]
        return ref
    if arg is None or isinstance(arg, (bool, int, float, str)):
        return arg
    if isinstance(arg, (list, tuple)):
        return tuple(as_arg(item, name) for item in arg)
    for kind, word in _CONSTANTS.items():
        if isinstance(arg, kind):
            return Symbol(word, str(arg).removeprefix("torch."))
    raise TypeError(f"argument of type {type(arg).__name__}")
