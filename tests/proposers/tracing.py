"""Regions for tests: trace a function of tensors, the whole of it as one region."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from kernelforge_lab.capture.canonical import Draft, Specs
from kernelforge_lab.kernels.region import Region


def region_of(function: Callable[..., Any], *inputs: torch.Tensor) -> Region:
    """The function's ATen graph as a region; its inputs in the order of first use must be all used."""
    with torch.no_grad():
        graph = make_fx(functionalize(function), tracing_mode="fake")(*inputs).graph
    calls = [n for n in graph.nodes if n.op == "call_function"]
    cut = SimpleNamespace(origin={n: n for n in calls}, sinkable=frozenset())
    sheet = Draft(cast(Any, cut), Specs(), frozenset(calls))
    for node in graph.nodes:
        if node.op == "placeholder":
            sheet._name(node)
    sheet.write(n for n in calls if n.target is not operator.getitem)
    (result,) = next(n for n in graph.nodes if n.op == "output").args
    results = result if isinstance(result, (tuple, list)) else (result,)
    region, _, _ = sheet.finish(results)
    return Region.parse(region.text)
