"""Writes a split graph as one Python function: no interpreter, no dictionary, names dropped in time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import fx

from ..kernels.execution import compile_region
from ..kernels.region import Region
from .ops import Kind
from .schedule import Step

Implementation: TypeAlias = Callable[..., Sequence[torch.Tensor]]
Implement: TypeAlias = Callable[[Region], "Implementation | None"]
Wrap: TypeAlias = Callable[[Callable[..., Any], Step], Callable[..., Any]]
Boxed: TypeAlias = Callable[[list[Any]], Any]


class Printer:
    """See ``SplitGraph.build`` for the meaning of ``implement`` and ``wrap``."""

    def __init__(
        self, module: fx.GraphModule, steps: Sequence[Step], implement: Implement, wrap: Wrap | None
    ) -> None:
        self._module = module
        self._steps = steps
        self._implement = implement
        self._wrap = wrap
        self._regions: dict[str, Implementation] = {}
        self._scope: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._names: dict[fx.Node, str] = {}
        self._bound: dict[int, str] = {}

    def compile(self) -> Boxed:
        """The boxed callable: takes a list of inputs, empties it, returns a tuple."""
        nodes = list(self._module.graph.nodes)
        for node in nodes:
            if node.op == "get_attr":
                self._names[node] = self._bind(operator.attrgetter(str(node.target))(self._module))
        inputs = [node for node in nodes if node.op == "placeholder"]
        output = next(node for node in reversed(nodes) if node.op == "output")
        kept = set(output.all_input_nodes)
        dies = self._last_uses(kept)
        lines = ["def forward(args):"]
        if inputs:
            lines.append(f"    {', '.join(map(self._name, inputs))}{',' if len(inputs) == 1 else ''} = args")
        lines.append("    args.clear()")
        lines += self._drop([node for node in inputs if node not in dies and node not in kept])
        for i, step in enumerate(self._steps):
            lines.append("    " + self._line(step))
            lines += self._drop([n for n in (*dict.fromkeys(step.reads), *step.writes) if dies.get(n) == i])
        results = output.args[0]
        parts = [self._source(r) for r in (results if isinstance(results, list | tuple) else (results,))]
        lines.append(f"    return ({', '.join(parts)}{',' if parts else ''})")
        exec(compile("\n".join(lines), "<forged graph>", "exec"), self._scope)  # noqa: S102 - our own text
        forward: Boxed = self._scope["forward"]
        # Told so, aot_autograd hands over its only references: inputs are freed as early as in eager.
        forward._boxed_call = True  # type: ignore[attr-defined]
        return forward

    def _last_uses(self, kept: set[fx.Node]) -> dict[fx.Node, int]:
        """Value → index of the step after which its name is dropped; outputs and constants never are."""
        return {
            node: i
            for i, step in enumerate(self._steps)
            for node in (*step.writes, *step.reads)
            if node not in kept and node.op != "get_attr"
        }

    def _drop(self, nodes: Sequence[fx.Node]) -> list[str]:
        return ["    del " + ", ".join(map(self._name, nodes))] if nodes else []

    def _line(self, step: Step) -> str:
        if step.region is not None:
            call = self._bind(self._dress(self._region(step.region), step))
            writes = "".join(f"{self._name(node)}, " for node in step.writes)
            return f"{writes}= {call}({', '.join(map(self._name, step.reads))})"
        node = step.node
        args = [self._source(arg) for arg in node.args]
        if node.target is operator.getitem:
            return f"{self._name(node)} = {args[0]}[{args[1]}]"
        args += [f"{key}={self._source(arg)}" for key, arg in node.kwargs.items()]
        # _op is what OpOverload.__call__ calls: a Python frame less for each of a model's thousand calls.
        target: Any = getattr(node.target, "_op", node.target)
        call = self._bind(target if step.kind is Kind.VIEW else self._dress(target, step))
        return f"{self._name(node)} = {call}({', '.join(args)})"

    def _region(self, region: Region) -> Implementation:
        known = self._regions.get(region.hash)
        if known is None:
            known = self._regions[region.hash] = self._implement(region) or compile_region(region)
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
        if isinstance(arg, list | tuple):
            return "[" + ", ".join(map(self._source, arg)) + "]"
        if arg is None or isinstance(arg, bool | int | float | str):
            return repr(arg)
        if isinstance(arg, slice):
            return f"slice({self._source(arg.start)}, {self._source(arg.stop)}, {self._source(arg.step)})"
        return self._bind(arg)
