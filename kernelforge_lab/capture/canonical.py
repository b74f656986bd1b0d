"""From the nodes of one region to a Region: own names, own order, nothing of the model it came from."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import fx

from ..kernels.region import Arg, Op, Ref, Region
from ..kernels.spec import TensorSpec
from .ops import Kind
from .regions import Cut, as_arg
from .specs import spec_of, unsupported

Call: TypeAlias = "tuple[fx.Node, str, tuple[Arg, ...], tuple[tuple[str, Arg], ...]]"


class Specs:
    """Specs of graph values, computed once per node. A tuple for nodes with several results."""

    def __init__(self) -> None:
        self._known: dict[fx.Node, tuple[TensorSpec | None, ...]] = {}

    def all_of(self, node: fx.Node) -> tuple[TensorSpec | None, ...]:
        known = self._known.get(node)
        if known is None:
            value = node.meta.get("val")
            values = value if isinstance(value, (tuple, list)) else (value,)
            known = tuple(None if unsupported(v) else spec_of(v) for v in values)
            self._known[node] = known
        return known

    def of(self, node: fx.Node) -> TensorSpec:
        spec = self.all_of(node)[0]
        assert spec is not None, f"{node} has no spec"
        return spec


@dataclass
class Draft:
    """A region being written down: ops so far, the outside values it reads, names of inside values."""

    cut: Cut
    specs: Specs
    inside: frozenset[fx.Node]
    pulled: frozenset[fx.Node] = frozenset()
    inputs: dict[fx.Node, str] = field(default_factory=dict)
    names: dict[fx.Node, str] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    clones: dict[object, str] = field(default_factory=dict)

    def write(self, nodes: Iterable[fx.Node]) -> None:
        for node in nodes:
            self._name(node)

    def _name(self, node: fx.Node) -> str:
        """Name of ``node`` in the region; writes it, and what it needs, first where it is inside."""
        known = self.names.get(node) or self.inputs.get(node)
        if known is not None:
            return known
        if not self._is_inside(node):
            name = f"in{len(self.inputs)}"
            self.inputs[node] = name
            return name
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, fx.Node)
            name = f"{self._name(source)}.{index}"
        else:
            name = self._call(node)
        self.names[node] = name
        return name

    def _is_inside(self, node: fx.Node) -> bool:
        if node in self.pulled:
            return True
        origin = self.cut.origin.get(node)
        return origin is not None and (origin in self.inside or origin in self.cut.sinkable)

    def _call(self, node: fx.Node) -> str:
        args = tuple(as_arg(arg, self._ref) for arg in node.args)
        kwargs = tuple((key, as_arg(arg, self._ref)) for key, arg in node.kwargs.items())
        target = str(node.target)
        if node not in self.inside:  # a clone: equal ones are one
            key = repr((target, args, kwargs))
            if key in self.clones:
                return self.clones[key]
            self.clones[key] = f"t{len(self.calls)}"
        self.calls.append((node, target, args, kwargs))
        return f"t{len(self.calls) - 1}"

    def _ref(self, node: fx.Node) -> Ref:
        return Ref(self._name(node))

    def finish(self, results: Iterable[fx.Node]) -> tuple[Region, tuple[fx.Node, ...], tuple[fx.Node, ...]]:
        """The region, the outside nodes it reads and the nodes it returns, both in call order."""
        returned = tuple(results)
        names = tuple(self._name(node) for node in returned)
        alive = set(names)
        for _, _, args, kwargs in self.calls:
            alive.update(ref for arg in (*args, *(v for _, v in kwargs)) for ref in _refs(arg))
        ops = []
        for i, (node, target, args, kwargs) in enumerate(self.calls):
            outs = self.specs.all_of(node)
            is_tuple = isinstance(node.meta.get("val"), (tuple, list))
            if is_tuple:  # nobody reads a dead result, so nobody need compute it
                outs = tuple(spec if f"t{i}.{k}" in alive else None for k, spec in enumerate(outs))
            ops.append(Op(f"t{i}", target, args, kwargs, outs, is_tuple))
        specs = tuple(self.specs.of(node) for node in self.inputs)
        return Region(specs, tuple(ops), names), tuple(self.inputs), returned


def draft(cut: Cut, specs: Specs, nodes: Iterable[fx.Node]) -> Draft:
    """Write the nodes of one region down; views that overlap each other are pulled inside.

    Reading ``q`` and its two halves (RoPE) as three inputs would count q's bytes twice: when views of
    one value together have more elements than the value, the region reads the value itself.
    """
    members = tuple(nodes)
    inside = frozenset(members)
    first = Draft(cut, specs, inside)
    first.write(members)
    pulled = _overlapping(cut, specs, first.inputs)
    if not pulled:
        return first
    second = Draft(cut, specs, inside, pulled)
    second.write(members)
    return second


def _overlapping(cut: Cut, specs: Specs, inputs: Iterable[fx.Node]) -> frozenset[fx.Node]:
    under: dict[fx.Node, list[fx.Node]] = {}
    chains: dict[fx.Node, list[fx.Node]] = {}
    for value in inputs:
        chain = [value]
        while cut.kind.get(chain[-1]) is Kind.VIEW:
            chain.append(chain[-1].all_input_nodes[0])
        chains[value] = chain
        for ancestor in chain:
            under.setdefault(ancestor, []).append(value)
    pulled: set[fx.Node] = set()
    for chain in chains.values():
        for at, ancestor in enumerate(chain):
            if isinstance(ancestor.meta.get("val"), (tuple, list)) or len(under[ancestor]) < 2:
                continue
            read = sum(specs.of(value).distinct_numel for value in under[ancestor])
            if read > specs.of(ancestor).distinct_numel:
                pulled.update(chain[:at])
            break
    return frozenset(pulled)


def _refs(arg: Arg) -> Iterable[str]:
    if isinstance(arg, Ref):
        yield arg.name
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _refs(item)
