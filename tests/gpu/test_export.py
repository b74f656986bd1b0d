"""Exported cuda kernels: cubins that torch and the driver alone can launch."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from .test_guard import ADD, SCRATCH, SOURCE

pytestmark = pytest.mark.gpu


@pytest.fixture(params=[SOURCE, SCRATCH], ids=["plain", "workspace"])
def package(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from kernelforge_lab.export import export
    from tests.export.made import history

    name = "cuda_" + tmp_path.name.replace("-", "_").replace("[", "_").replace("]", "_")
    past = history(name, [(ADD, 1)], {ADD.hash: request.param}, target="cuda")
    export(past, tmp_path / name)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module(name)


def test_kernels_answer_on_the_callers_stream_and_in_graphs(package: Any) -> None:
    import torch

    x, b = torch.randn(4096, 512, device="cuda"), torch.randn(512, device="cuda")
    kernel = package.kernels[ADD.hash]
    torch.testing.assert_close(kernel(x, b)[0], x + b)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        (y,) = kernel(x * 2, b)
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x * 2 + b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (z,) = kernel(x, b)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(z, x + b)
    assert package.counts()[ADD.hash] == {"kernel": 3}


def test_the_operator_works_under_torch_compile(package: Any) -> None:
    import torch

    x, b = torch.randn(4096, 512, device="cuda"), torch.randn(512, device="cuda")
    op = package.ops[ADD.hash]
    compiled = torch.compile(lambda x, b: op(x, b) * 2, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, b), (x + b) * 2)
    fast = package.apply(lambda x, b: (x + b, x @ x.T[:, :4]), fullgraph=True)
    torch.testing.assert_close(fast(x, b)[0], x + b)
    assert package.counts()[ADD.hash] == {"kernel": 2}
    assert torch.equal(package.kernels[ADD.hash](x[:5], b)[0], x[:5] + b)
