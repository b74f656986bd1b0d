"""From a cut to calls in an order: regions with what they read and return, everything else one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import fx

from ..kernels.region import Region
from .canonical import Draft, Specs, draft
from .ops import Kind
from .regions import Cut

_KEPT = (Kind.HEAVY, Kind.RANDOM)


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the split graph: a region, or one node left to PyTorch (views and getitems too).

    ``reads`` are the graph values the call needs, ``writes`` those it defines.
    """

    reads: tuple[fx.Node, ...]
    writes: tuple[fx.Node, ...]
    kind: Kind
    region: Region | None = None

    @property
    def node(self) -> fx.Node:
        return self.writes[0]

    @property
    def name(self) -> str:
        """Target of a PyTorch call, or the region's title."""
        return self.region.title if self.region is not None else str(self.node.target)


def schedule(graph: fx.Graph, cut: Cut) -> Iterator[Step]:
    """Steps such that each comes after what it reads, and otherwise as late as the model had them."""
    specs = Specs()
    drafts = {head: draft(cut, specs, nodes) for head, nodes in cut.members().items()}
    needed = _needed(graph, cut, specs, drafts)
    returned: dict[fx.Node, list[fx.Node]] = {}
    for value in sorted(needed, key=cut.order.__getitem__):
        returned.setdefault(_home(cut, value), []).append(value)
    steps: dict[fx.Node, Step] = {}
    for head, values in returned.items():
        region, reads, writes = drafts[head].finish(values)
        steps[head] = Step(reads, writes, Kind.FUSIBLE, region)
    return _in_order(_roots(graph, cut), steps, cut)


def _needed(graph: fx.Graph, cut: Cut, specs: Specs, drafts: dict[fx.Node, Draft]) -> set[fx.Node]:
    """Region values that somebody outside reads. Sinkable ones among them get a region of their own."""
    needed: set[fx.Node] = set()
    seen: set[fx.Node] = set()
    waiting: list[fx.Node] = []
    for node in graph.nodes:
        if node.op == "output" or cut.kind.get(node) in _KEPT:
            waiting.extend(node.all_input_nodes)
    for written in drafts.values():
        waiting.extend(written.inputs)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if cut.kind.get(value) is Kind.VIEW:  # views are made again outside, from what they view
            waiting.extend(value.all_input_nodes)
        elif (source := cut.origin.get(value)) is not None:
            needed.add(value)
            if source in cut.sinkable and source not in drafts:
                drafts[source] = draft(cut, specs, (source,))
                waiting.extend(drafts[source].inputs)
    return needed


def _home(cut: Cut, value: fx.Node) -> fx.Node:
    """The node that stands for the step which defines ``value``."""
    source = cut.origin.get(value)
    if source is None or cut.kind.get(value) is Kind.VIEW:
        return value
    return cut.group.get(source, source)


def _roots(graph: fx.Graph, cut: Cut) -> Iterator[fx.Node]:
    """Steps to place, in the model's order; a region where its last node was."""
    last = {head: nodes[-1] for head, nodes in cut.members().items()}
    for node in graph.nodes:
        if node.op == "output":
            yield from (_home(cut, value) for value in node.all_input_nodes)
        elif cut.kind.get(node) in _KEPT:
            yield node
        elif node in cut.group and last[cut.group[node]] is node:
            yield cut.group[node]


def _in_order(roots: Iterator[fx.Node], steps: dict[fx.Node, Step], cut: Cut) -> Iterator[Step]:
    done: set[fx.Node] = set()
    for root in roots:
        stack = [root]
        while stack:  # depth first, without recursion: a model has hundreds of levels
            unit = stack[-1]
            step = None if unit in done or unit.op != "call_function" else steps.get(unit)
            if step is None and unit not in done and unit.op == "call_function" and unit not in cut.group:
                step = Step(tuple(unit.all_input_nodes), (unit,), cut.kind[unit])
            if step is not None:
                before = (*step.reads, *((cut.after[unit],) if unit in cut.after else ()))
                missing = [home for home in (_home(cut, value) for value in before) if home not in done]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                yield step
            done.add(stack.pop())
