"""The forged step as a CUDA graph: same answers by one replay, recorded anew for every shape."""

from __future__ import annotations

import pytest

from .test_guard import ADD, SOURCE

pytestmark = pytest.mark.gpu


def forged():  # type: ignore[no-untyped-def]
    import torch

    from kernelforge_lab.kernels.kernel import Kernel
    from tests.deploy.helpers import as_installed, certified

    def step(x: torch.Tensor, bias: torch.Tensor, scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {"sum": x + bias, "rows": (x @ x.T[:, :8]) * scale}

    winner = certified(ADD, Kernel(SOURCE, ADD.hash, "cuda"))
    x, bias = torch.randn(4096, 512, device="cuda"), torch.randn(512, device="cuda")
    return as_installed(step, (x, bias), {ADD.hash: winner}, target="cuda", graphs=True), step, x, bias


def test_replays_answer_for_the_inputs_of_each_call() -> None:
    import torch

    model, step, _, _ = forged()
    assert model.counts().hits > 0, model.counts()
    for _ in range(3):
        x, bias = torch.randn(4096, 512, device="cuda"), torch.randn(512, device="cuda")
        before = model.counts()
        got, want = model(x, bias), step(x, bias)
        torch.testing.assert_close(got, want)
        assert model.counts().hits == before.hits + 1 and model.counts().fallbacks == before.fallbacks
    kept = got["sum"].clone()
    model(x + 1, bias)
    assert torch.equal(got["sum"], kept), "results are the caller's own"
    assert any("CUDA graph of the step holds" in note or "hold" in note for note in model._built.notes())


def test_each_shape_and_each_plain_argument_has_its_own_graph() -> None:
    import torch

    model, step, x, bias = forged()
    for args in ((x[:64].clone(), bias), (x, bias, 2.0), (x, bias, 3.0)):
        for _ in range(2):
            torch.testing.assert_close(model(*args), step(*args))
    assert model._built.notes()[0].startswith("4 CUDA graphs")


def test_what_cannot_be_recorded_runs_as_it_is() -> None:
    import torch

    from kernelforge_lab.deploy.counts import Counts
    from kernelforge_lab.deploy.graphs import Graphed

    counts = Counts()
    graphed = Graphed(lambda x: x * x.sum().item(), counts)  # waits for the GPU
    x = torch.ones(8, device="cuda")
    for _ in range(2):
        assert torch.equal(graphed(x), x * 8)
    assert torch.equal(Graphed(lambda x: x + 1, counts)(torch.ones(2)), torch.full((2,), 2.0))
    assert counts.hits == 0 and all(reason.startswith("no CUDA graph") for reason in counts.fallbacks)
    assert torch.equal(torch.ones(2, device="cuda") + 1, torch.full((2,), 2.0, device="cuda")), (
        "CUDA still works"
    )
