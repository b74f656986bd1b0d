"""A captured graph cut into regions, and the lean callable made from it again.

``SplitGraph.build`` is what a forged model runs: straight-line Python in which every region is one
positional call and everything else is the ATen call eager would have made.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..kernels.execution import compile_region
from ..kernels.region import Region
from .canonical import Specs, draft
from .dedupe import merge_equal_calls
from .ops import Kind
from .regions import Cut, cut

Implementation = Callable[..., Sequence[torch.Tensor]]
Implement = Callable[[Region], "Implementation | None"]
Wrap = Callable[[Callable[..., Any], "Step"], Callable[..., Any]]


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


@dataclass(frozen=True, eq=False)
class SplitGraph:
    """Steps in an order that respects data flow and stays close to the model's own."""

    module: fx.GraphModule
    steps: tuple[Step, ...]
    kept: tuple[tuple[str, str], ...]

    @classmethod
    def split(
        cls, module: fx.GraphModule, static: Iterable[int] = (), *, device: str = "cpu", level: str = "region"
    ) -> SplitGraph:
        """Cut an ATen graph whose nodes carry fake values in ``meta["val"]`` (equal calls are merged first).

        ``static`` are positions of the inputs that hold parameters or buffers. ``level`` is ``region``
        or ``op``. ``kept`` pairs an operator with the reason why it is in no region.
        """
        merge_equal_calls(module.graph)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        fixed = [placeholders[i] for i in static if i < len(placeholders)]
        parts = cut(module.graph, fixed, device, by_op=level == "op")
        kept = tuple((str(node.target), reason) for node, reason in parts.kept.items())
        return cls(module, tuple(_schedule(module.graph, parts)), kept)

    @property
    def regions(self) -> dict[str, Region]:
        """Distinct regions by hash, in order of first use."""
        return {step.region.hash: step.region for step in self.steps if step.region is not None}

    def build(self, implement: Implement, wrap: Wrap | None = None) -> Callable[[list[Any]], tuple[Any, ...]]:
        """A boxed callable: takes a list of inputs, empties it, returns the graph's outputs.

        ``implement(region)`` gives the callable to use for a region (tensors in, tuple of tensors out) or
        None for the stock ATen calls. It is asked once per distinct region. ``wrap(callable, step)`` may
        dress any step that is not a view (the profiler's clock).
        """
        return _Printer(self, implement, wrap).compile()


def stock(region: Region) -> Implementation:
    """The region as eager ATen calls."""
    return compile_region(region)


def _schedule(graph: fx.Graph, parts: Cut) -> Iterator[Step]:
    specs = Specs()
    groups = parts.members()
    drafts = {head: draft(parts, specs, nodes) for head, nodes in groups.items()}
    needed: set[fx.Node] = set()
    seen: set[fx.Node] = set()
    waiting: list[fx.Node] = []
    for node in graph.nodes:
        if node.op == "output" or parts.kind.get(node) in (Kind.HEAVY, Kind.RANDOM):
            waiting.extend(node.all_input_nodes)
    for written in drafts.values():
        waiting.extend(written.inputs)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if parts.kind.get(value) is Kind.VIEW:
            waiting.extend(value.all_input_nodes)
        elif (source := parts.origin.get(value)) is not None:
            needed.add(value)
            if source in parts.sinkable and source not in drafts:
                drafts[source] = draft(parts, specs, (source,))
                waiting.extend(drafts[source].inputs)

    def home(value: fx.Node) -> fx.Node:
        """The node that stands for the step which defines ``value``."""
        source = parts.origin.get(value)
        if source is None or parts.kind.get(value) is Kind.VIEW:
            return value
        return parts.group.get(source, source)

    returned: dict[fx.Node, list[fx.Node]] = {}
    for value in sorted(needed, key=parts.order.__getitem__):
        returned.setdefault(home(value), []).append(value)
    steps: dict[fx.Node, Step] = {}
    for head, written in drafts.items():
        if head in returned:
            region, reads, writes = written.finish(returned[head])
            steps[head] = Step(reads, writes, Kind.FUSIBLE, region)
    done: set[fx.Node] = set()
    last = {head: nodes[-1] for head, nodes in groups.items()}
    for node in graph.nodes:
        kind = parts.kind.get(node)
        if node.op == "output":
            wanted = [home(value) for value in node.all_input_nodes]
        elif kind in (Kind.HEAVY, Kind.RANDOM):
            wanted = [node]
        elif node in parts.group and last[parts.group[node]] is node:
            wanted = [parts.group[node]]
        else:
            continue
        stack = wanted[::-1]
        while stack:  # depth first: what a step reads comes before it
            unit = stack[-1]
            if unit in done or (unit.op != "call_function"):
                done.add(stack.pop())
                continue
            step = steps.get(unit)
            if step is None:
                if home(unit) is not unit or unit in groups:  # a region nobody reads
                    done.add(stack.pop())
                    continue
                step = Step(tuple(unit.all_input_nodes), (unit,), parts.kind[unit])
            missing = [h for h in map(home, step.reads) if h not in done and h.op == "call_function"]
            if missing:
                stack.extend(missing[::-1])
                continue
            done.add(stack.pop())
            yield step


class _Printer:
    """Writes the split graph as one Python function."""

    def __init__(self, split: SplitGraph, implement: Implement, wrap: Wrap | None) -> None:
        self._split = split
        self._implement = implement
        self._wrap = wrap
        self._regions: dict[str, Implementation] = {}
        self._scope: dict[str, Any] = {"torch": torch, "inf": math.inf, "nan": math.nan}
        self._names: dict[fx.Node, str] = {}
        self._bound: dict[int, str] = {}

    def compile(self) -> Callable[[list[Any]], tuple[Any, ...]]:
        graph = self._split.module.graph
        inputs = []
        for node in graph.nodes:
            if node.op == "placeholder":
                inputs.append(self._name(node))
            elif node.op == "get_attr":
                self._names[node] = self._bind(operator.attrgetter(str(node.target))(self._split.module))
        output = next(node for node in reversed(graph.nodes) if node.op == "output")
        dies = self._last_uses(output)
        lines = ["def forward(args):"]
        if inputs:
            lines += [f"    {', '.join(inputs)}{',' if len(inputs) == 1 else ''} = args", "    args.clear()"]
        unused = [n for n in graph.nodes if n.op == "placeholder" and n not in dies]
        if unused:
            lines.append("    del " + ", ".join(self._name(n) for n in unused if n not in output.all_input_nodes))
            if lines[-1] == "    del ":
                lines.pop()
        for i, step in enumerate(self._split.steps):
            lines.append("    " + self._line(step))
            dead = [self._name(n) for n in (*dict.fromkeys(step.reads), *step.writes) if dies.get(n) == i]
            if dead:
                lines.append("    del " + ", ".join(dead))
        results = output.args[0]
        parts = [self._source(r) for r in (results if isinstance(results, (tuple, list)) else (results,))]
        lines.append(f"    return ({', '.join(parts)}{',' if parts else ''})")
        exec(compile("\n".join(lines), "<forged graph>", "exec"), self._scope)
        forward: Any = self._scope["forward"]
        forward._boxed_call = True  # aot_autograd then hands over its only references to the inputs
        return forward  # type: ignore[no-any-return]

    def _last_uses(self, output: fx.Node) -> dict[fx.Node, int]:
        """Value → index of the step after which its name is dropped; outputs and constants never are."""
        kept = set(output.all_input_nodes)
        uses = {
            node: i
            for i, step in enumerate(self._split.steps)
            for node in (*step.writes, *step.reads)
            if node not in kept and node.op != "get_attr"
        }
        return uses

    def _line(self, step: Step) -> str:
        if step.region is not None:
            call = self._bind(self._dress(self._region(step.region), step))
            writes = ", ".join(self._name(node) for node in step.writes)
            comma = "," if len(step.writes) == 1 else ""
            return f"{writes}{comma} = {call}({', '.join(self._name(node) for node in step.reads)})"
        node = step.node
        args = [self._source(arg) for arg in node.args]
        if node.target is operator.getitem:
            return f"{self._name(node)} = {args[0]}[{args[1]}]"
        args += [f"{key}={self._source(arg)}" for key, arg in node.kwargs.items()]
        target: Any = node.target
        call = self._bind(target if step.kind is Kind.VIEW else self._dress(target, step))
        return f"{self._name(node)} = {call}({', '.join(args)})"

    def _region(self, region: Region) -> Implementation:
        known = self._regions.get(region.hash)
        if known is None:
            known = self._regions[region.hash] = self._implement(region) or stock(region)
        return known

    def _dress(self, call: Callable[..., Any], step: Step) -> Callable[..., Any]:
        return call if self._wrap is None else self._wrap(call, step)

    def _name(self, node: fx.Node) -> str:
        known = self._names.get(node)
        if known is None:
            known = self._names[node] = f"v{len(self._names)}"
        return known

    def _bind(self, value: Any) -> str:
        """A global of the generated function that holds ``value``."""
        name = self._bound.get(id(value))
        if name is None:
            name = self._bound[id(value)] = f"c{len(self._bound)}"
            self._scope[name] = value  # also keeps it alive, so that its id stays its own
        return name

    def _source(self, arg: Any) -> str:
        if isinstance(arg, fx.Node):
            return self._name(arg)
        if isinstance(arg, (list, tuple)):
            return "[" + ", ".join(map(self._source, arg)) + "]"
        if arg is None or isinstance(arg, (bool, int, float, str)):
            return repr(arg)
        if isinstance(arg, slice):
            return f"slice({self._source(arg.start)}, {self._source(arg.stop)}, {self._source(arg.step)})"
        return self._bind(arg)
