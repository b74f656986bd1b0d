"""Exported kernels in whole models: found in the graph that torch.compile captures, or layer by layer."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx, nn

from .loader import MANIFEST, Kernel, kernels, value_of
from .operators import ops

Found = dict[str, Any]


def apply(model: Callable[..., Any], **options: Any) -> Any:
    """``torch.compile(model)`` with the kernels in place of the regions they were made for.

    Everything else, and every call that records gradients, is PyTorch's own. ``options`` are
    torch.compile's (``fullgraph=True``).
    """
    return torch.compile(model, backend=backend, dynamic=False, **options)


def backend(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """The torch.compile backend behind ``apply``."""
    from torch._dynamo.backends.common import aot_autograd

    def as_it_is(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(graph)

    def placed(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        place(graph)
        return _boxed(graph)

    compiler = aot_autograd(fw_compiler=as_it_is, bw_compiler=as_it_is, inference_compiler=placed)
    compiled: Callable[..., Any] = compiler(module, inputs)
    return compiled


def place(module: fx.GraphModule, *, as_ops: bool = False) -> int:
    """Put kernels into a functional ATen graph, in place; how many. ``as_ops``: as operators.

    Nodes must carry their fake values in ``meta["val"]``, as aot_autograd's and torch.export's do.
    Larger regions go first, so that a kernel never takes a part of what another one does whole, and of
    equal ones the one with fewer results: the other would write what nobody reads.
    """
    graph, count = module.graph, 0
    _merge_equal_calls(graph)
    for kernel in sorted(kernels.values(), key=lambda k: (-len(k.entry["ops"]), len(k.entry["results"]))):
        for node in list(graph.nodes):
            found = None if node._erased else next(_matches(kernel, node), None)
            if found is not None:
                _replace(graph, kernel, found, ops[kernel.hash] if as_ops else kernel)
                count += 1
    _restore_order(graph)
    graph.lint()
    module.recompile()
    return count


def _boxed(module: fx.GraphModule) -> Callable[..., Any]:
    def run(args: list[Any]) -> Any:
        inputs = list(args)
        args.clear()
        return module.forward(*inputs)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


# ---- finding a region in a graph ----


def _matches(kernel: Kernel, node: fx.Node) -> Iterator[Found]:
    """Ways in which ``node`` is the first result of the kernel's region: name in the region → graph node."""
    table = {op["name"]: op for op in kernel.entry["ops"]}
    found: Found = {}
    name = kernel.entry["results"][0]
    if _same_value(kernel, table, {"ref": name}, node, found):
        yield from _cover(kernel, table, found)


def _cover(kernel: Kernel, table: Found, found: Found) -> Iterator[Found]:
    """Results the first one does not depend on are found among the users of what is known."""
    for name, op in table.items():
        if name in found:
            continue
        users = [
            user for ref in _refs([op["args"], list(op["kwargs"].values())]) for user in _users(ref, found)
        ]
        if not users:
            continue
        for user in dict.fromkeys(users):
            trial = dict(found)
            if _same_value(kernel, table, {"ref": name}, user, trial):
                yield from _cover(kernel, table, trial)
        return
    if all(name in found for name in (*table, *kernel.entry["results"])) and _is_closed(kernel, found):
        yield found


def _is_closed(kernel: Kernel, found: Found) -> bool:
    """Whether nothing but the results is read from outside: else PyTorch would compute the rest again."""
    inside = {node for name, node in found.items() if not name.startswith("in")}
    results = {found[name] for name in kernel.entry["results"]}
    return all(inside.issuperset(node.users) for node in inside - results if not _is_shared(node, inside))


def _is_shared(node: fx.Node, inside: set[fx.Node]) -> bool:
    """Views and functions of weights alone: every region that reads them has copies of its own."""

    def is_fixed(node: fx.Node) -> bool:
        if node in inside:
            return all(map(is_fixed, node.all_input_nodes))
        return node.op in ("placeholder", "get_attr")

    return node.target is operator.getitem or _is_view(node.target) or is_fixed(node)


def _same_value(kernel: Kernel, table: Found, wanted: Any, given: Any, found: Found) -> bool:
    """Whether the graph's argument ``given`` is what the region says; notes new names in ``found``."""
    if isinstance(wanted, dict) and "ref" in wanted:
        return isinstance(given, fx.Node) and _same_node(kernel, table, wanted["ref"], given, found)
    if isinstance(wanted, list):
        return (
            isinstance(given, (list, tuple))
            and len(wanted) == len(given)
            and all(_same_value(kernel, table, w, g, found) for w, g in zip(wanted, given, strict=True))
        )
    if isinstance(given, fx.Node):
        return False
    constant = value_of(wanted, {})
    return type(constant) is type(given) and repr(constant) == repr(given)


def _same_node(kernel: Kernel, table: Found, name: str, node: fx.Node, found: Found) -> bool:
    if name in found:
        return found[name] is node
    if name.startswith("in"):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or kernel.fits[int(name[2:])](value):
            return False
    elif "." in name:
        base, _, item = name.partition(".")
        if node.target is not operator.getitem or node.args[1] != int(item):
            return False
        source = node.args[0]
        if not isinstance(source, fx.Node) or not _same_node(kernel, table, base, source, found):
            return False
    else:
        op = table[name]
        if str(node.target) != op["target"] or node.kwargs.keys() != op["kwargs"].keys():
            return False
        pairs = [
            (op["args"], list(node.args)),
            *((op["kwargs"][key], node.kwargs[key]) for key in node.kwargs),
        ]
        if not all(_same_value(kernel, table, wanted, given, found) for wanted, given in pairs):
            return False
    found[name] = node
    return True


def _refs(arg: Any) -> Iterator[str]:
    if isinstance(arg, list):
        for item in arg:
            yield from _refs(item)
    elif isinstance(arg, dict) and "ref" in arg:
        yield arg["ref"]


def _users(name: str, found: Found) -> list[fx.Node]:
    """Who reads a value of the region, as far as it is found."""
    if name in found:
        return list(found[name].users)
    source = found.get(name.partition(".")[0])
    return [user for item in source.users for user in item.users] if source is not None else []


def _replace(graph: fx.Graph, kernel: Kernel, found: Found, call: Any) -> None:
    results = [found[name] for name in kernel.entry["results"]]
    with graph.inserting_after(results[-1]):
        fused = graph.call_function(call, tuple(found[f"in{i}"] for i in range(len(kernel.entry["inputs"]))))
    is_tuple = isinstance(call, Kernel) or len(results) > 1
    if is_tuple:
        fused.meta["val"] = tuple(result.meta.get("val") for result in results)
    for i, result in enumerate(results):
        value = fused
        if is_tuple:
            with graph.inserting_after(fused):
                value = graph.call_function(operator.getitem, (fused, i))
        value.meta = dict(result.meta)
        result.replace_all_uses_with(value)
    for name in reversed([n for n in found if not n.startswith("in")]):  # users were noted after their inputs
        if not found[name].users:
            graph.erase_node(found[name])


def _restore_order(graph: fx.Graph) -> None:
    """Every node after what it reads, else as it was."""
    done: set[fx.Node] = set()
    for start in list(graph.nodes):
        stack = [start]
        while stack:
            node = stack[-1]
            waiting = [i for i in node.all_input_nodes if i not in done]
            if waiting and node not in done:
                stack += waiting
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                graph._root.prepend(node)


def _merge_equal_calls(graph: fx.Graph) -> None:
    """As kernelforge-lab does before it cuts regions: equal pure calls are one, but for what is returned."""
    kept, waiting = set(), [n for node in graph.nodes if node.op == "output" for n in node.all_input_nodes]
    while waiting:
        node = waiting.pop()
        if node not in kept:
            kept.add(node)
            if node.target is operator.getitem or _is_view(node.target):
                waiting += node.all_input_nodes
    known: dict[Any, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node in kept or not _is_pure(node.target):
            continue
        first = known.setdefault((node.target, repr(node.args), repr(node.kwargs)), node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _is_view(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)


def _is_pure(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return target is operator.getitem
    return not target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags


# ---- layers ----


def kernelize(model: nn.Module) -> list[str]:
    """Give ``model``'s layers, in place, the kernels that do their whole forward; the names of those layers.

    As HuggingFace's ``kernels``: a layer is known by its class's name, brings its own weights, and keeps its
    original forward for training and for every input that the kernel was not made for.
    """
    changed = []
    for name, layer in model.named_modules():
        plans = MANIFEST.get("layers", {}).get(type(layer).__name__)
        if plans:
            layer.forward = _layer_forward(layer, layer.forward, plans)
            changed.append(name)
    return changed


def _layer_forward(layer: nn.Module, original: Callable[..., Any], plans: list[dict[str, Any]]) -> Any:
    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled() or kwargs:
            return original(*args, **kwargs)
        for plan in plans:
            if plan["args"] != len(args) or layer.training != plan["training"]:
                continue
            tensors = [
                args[i] if isinstance(i, int) else operator.attrgetter(i)(layer) for i in plan["inputs"]
            ]
            kernel = kernels[plan["region"]]
            if all(isinstance(t, torch.Tensor) for t in tensors) and not kernel.misfit(tuple(tensors)):
                return ops[plan["region"]](*tensors)
        return original(*args, **kwargs)

    return forward
