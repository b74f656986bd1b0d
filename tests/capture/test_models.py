"""Real architectures come out as one graph each, bit-equal to eager, with few distinct regions."""

from __future__ import annotations

import pytest
import torch

from kernelforge_lab.capture.intact import find
from kernelforge_lab.capture.trace import GraphBackend, through
from tests.models.zoo import ZOO


@pytest.mark.parametrize("name", ZOO)
def test_a_split_model_is_bit_equal(name: str) -> None:
    model, args, kwargs = ZOO[name]()
    backend = GraphBackend(lambda split: split.build(lambda _: None))
    compiled = through(model, backend)
    with torch.no_grad():
        expected = list(find(torch.Tensor, model(*args, **kwargs)))
        for _ in range(2):
            got = list(find(torch.Tensor, compiled(*args, **kwargs)))
            assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    (graph,) = backend.graphs
    assert backend.notes == [] and graph.kept == ()
    occurrences = sum(step.region is not None for step in graph.steps)
    assert 0 < len(graph.regions) <= 30 and occurrences >= len(graph.regions)


def test_upsampling_stays_the_operator_eager_runs() -> None:
    model, args, kwargs = ZOO["vae"]()
    backend = GraphBackend(lambda split: split.build(lambda _: None))
    with torch.no_grad():
        through(model, backend)(*args, **kwargs)
    ops = {op.short_name for r in backend.graphs[0].regions.values() for op in r.ops}
    assert "upsample_nearest2d" in ops
    kernels = torch.ops.aten.upsample_nearest2d.vec.py_kernels
    assert torch._C.DispatchKey.Autograd in kernels, "torch's own decomposition is back in its place"
