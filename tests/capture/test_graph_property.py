"""Any program made of fusible, view, heavy and multi-result operators: bit-equal, in valid order, convex."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.capture.ops import Kind
from kernelforge_lab.kernels.execution import compile_region
from kernelforge_lab.kernels.region import Region

from .helpers import split, stock

Unary = Callable[[torch.Tensor], torch.Tensor]
UNARY: list[Unary] = [
    torch.tanh,
    torch.relu,
    lambda x: x.t(),
    lambda x: x.reshape(2, 8).flip(0).reshape(4, 4),
    lambda x: x[:, :2].repeat(1, 2),
    lambda x: x[1:2].expand(4, 4),
    lambda x: x.sum(-1, keepdim=True) + x,
    lambda x: torch.softmax(x, 0),
    lambda x: x.split(2, 1)[1].contiguous().repeat(1, 2),
    lambda x: torch.var_mean(x, 1, keepdim=True)[1] * x,
    lambda x: x.cumsum(0),
    lambda x: x.double().float(),
    lambda x: torch.zeros(4, 4).slice_scatter(x[:2], 0, 1, 3),
]
BINARY: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    torch.add,
    torch.mul,
    torch.mm,
    torch.maximum,
    lambda a, b: torch.cat([a[:2], b[2:]]),
    lambda a, b: torch.where(a > b, a, torch.arange(4.0)),
]
STEP = st.one_of(
    st.tuples(st.just("unary"), st.integers(0, len(UNARY) - 1), st.integers(0, 99), st.just(0)),
    st.tuples(st.just("binary"), st.integers(0, len(BINARY) - 1), st.integers(0, 99), st.integers(0, 99)),
)


def program(steps: list[tuple[str, int, int, int]], outputs: list[int]) -> Callable[..., list[torch.Tensor]]:
    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        values = list(inputs)
        for form, which, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[which](a) if form == "unary" else BINARY[which](a, b))
        return [values[i % len(values)] for i in outputs] + [values[-1]]

    return run


@settings(max_examples=60, deadline=None)
@given(
    st.lists(STEP, min_size=1, max_size=14),
    st.lists(st.integers(0, 99), max_size=3),
    st.sampled_from(["region", "op"]),
)
def test_a_split_program_computes_what_it_did(
    steps: list[tuple[str, int, int, int]], outputs: list[int], level: str
) -> None:
    run = program(steps, outputs)
    inputs = [torch.randn(4, 4), torch.randn(4, 4)]
    graph = split(run, *inputs, static=(1,), level=level)
    expected = run(*inputs)
    got = stock(graph)(list(inputs))
    assert len(got) == len(expected)
    for a, b in zip(expected, got, strict=True):
        assert torch.equal(a, b) and a.stride() == b.stride()

    defined = {node for node in graph.module.graph.nodes if node.op != "call_function"}
    for step in graph.steps:  # convexity: a region that waited for its own result would read ahead
        assert all(node in defined for node in step.reads)
        assert not defined & set(step.writes)
        defined.update(step.writes)
        if step.region is not None:
            assert step.kind is Kind.FUSIBLE and step.region.results
            assert Region.parse(step.region.text).hash == step.region.hash


@settings(max_examples=20, deadline=None)
@given(st.lists(STEP, min_size=3, max_size=10))
def test_a_region_alone_keeps_its_promises(steps: list[tuple[str, int, int, int]]) -> None:
    graph = split(program(steps, []), torch.randn(4, 4), torch.randn(4, 4))
    for region in graph.regions.values():
        inputs = [
            torch.randn(s.extent + s.offset)
            .to(getattr(torch, s.dtype))
            .as_strided(s.shape, s.strides, s.offset)
            for s in region.inputs
        ]
        for out, spec in zip(compile_region(region)(*inputs), region.outputs, strict=True):
            assert tuple(out.shape) == spec.shape and str(out.dtype) == f"torch.{spec.dtype}"
            sizes = zip(out.shape, out.stride(), spec.strides, strict=True)
            assert all(n == 1 or a == b for n, a, b in sizes)
