"""Splitting a function without Dynamo: fast enough for property tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from kernelforge_lab.capture.graph import SplitGraph
from kernelforge_lab.capture.printer import Boxed


def split(
    function: Callable[..., Any], *inputs: torch.Tensor, static: tuple[int, ...] = (), level: str = "region"
) -> SplitGraph:
    """The graph of ``function`` on fake copies of ``inputs``; ``static`` of them count as parameters."""
    with torch.no_grad():
        module = make_fx(function, tracing_mode="fake")(*inputs)
    module.graph.eliminate_dead_code()
    return SplitGraph.split(module, static, level=level)


def stock(graph: SplitGraph) -> Boxed:
    return graph.build(lambda _: None)


def texts(graph: SplitGraph) -> list[str]:
    return [step.region.text for step in graph.steps if step.region is not None]


def op_names(graph: SplitGraph) -> list[list[str]]:
    """Per region, in call order, the short names of its ops."""
    return [[op.short_name for op in step.region.ops] for step in graph.steps if step.region is not None]


def outside(graph: SplitGraph) -> list[str]:
    """Short names of what is left to PyTorch, in call order."""
    names = [str(step.node.target) for step in graph.steps if step.region is None]
    return [name.split(".")[1] if name.startswith("aten.") else name for name in names]
