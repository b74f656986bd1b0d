"""Winners in a model: real kernels, the registered backend, and every way it may not work out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed

from kernelforge_lab.deploy.apply import Forged, apply
from kernelforge_lab.deploy.backend import register
from kernelforge_lab.deploy.winner import Winner, registry
from kernelforge_lab.exc import CompileError, GuardError
from kernelforge_lab.kernels.kernel import Kernel

from .helpers import REGION, as_installed, certified, inputs, kernel, model


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(256), requires_grad=False)
        self.name = "mine"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return model(x, self.gain)


def winner(made: Kernel | str) -> dict[str, Winner]:
    return {REGION.hash: certified(REGION, made)}


def forge(module: nn.Module, made: Kernel | str, **options: bool) -> Forged:
    return apply(module, (inputs()[0],), {}, winner(made), limit_s=0.0, **options)


@pytest.fixture
def own_registry() -> Iterator[None]:
    registry.clear()
    register()
    yield
    registry.clear()


def installed(original: nn.Module, made: Kernel | str) -> Forged:
    """As if the A/B had been won: whether it is depends on the machine, and is not these tests' subject."""
    forged = forge(original, made)
    if forged.installed:
        return forged
    return as_installed(original, (inputs()[0],), winner(made), forged.measured)


def test_a_forged_model_answers_like_the_original_and_counts_its_hits() -> None:
    original, (x, _) = Model(), inputs()
    forged = installed(original, kernel())
    before = forged.counts().hits
    torch.testing.assert_close(forged(x), original(x))
    assert forged.counts().hits == before + 1
    assert forged.name == "mine" and forged.gain is original.gain and forged.model is forged
    assert forged.measured is not None and forged.measured.equal


def test_weights_changed_in_place_are_seen() -> None:
    original, (x, _) = Model(), inputs()
    forged = installed(original, kernel())
    original.gain.mul_(3)
    torch.testing.assert_close(forged(x), original(x))


def test_a_new_shape_is_served_by_pytorch() -> None:
    original = Model()
    forged = installed(original, kernel())
    x = torch.randn(3, 256)
    torch.testing.assert_close(forged(x), original(x))


def test_calls_that_record_gradients_go_to_the_original() -> None:
    original, (x, _) = Model(), inputs()
    forged = installed(original, kernel())
    forged(x.requires_grad_()).sum().backward()
    assert x.grad is not None
    assert any("gradients" in reason for reason in forged.counts().fallbacks)


def test_a_wrong_kernel_is_caught_in_shadow_and_the_model_stays() -> None:
    original = Model()
    forged = forge(original, kernel("0.999f * v / (1.0f + expf(-v))"))
    assert not forged.installed or forged.counts().hits == 0
    assert any(reason.startswith("shadow mismatch") for reason in forged.counts().fallbacks)
    assert torch.equal(forged.model(inputs()[0] * 0), original(inputs()[0] * 0))
    with pytest.raises(GuardError, match="shadow mismatch"):
        forge(original, kernel("0.999f * v"), strict=True)


def test_a_kernel_that_does_not_compile_leaves_the_model_and_says_why() -> None:
    original = Model()
    forged = forge(original, kernel("this is not C++"))
    assert forged.model is original and not forged.installed and forged.measured is None
    assert any(REGION.hash in note for note in forged.notes)
    with pytest.raises(CompileError):
        forge(original, kernel("this is not C++"), strict=True)


def test_a_kernel_without_a_certificate_for_this_machine_is_not_installed() -> None:
    original = Model()
    bare = {REGION.hash: Winner(REGION, kernel())}
    forged = apply(original, (inputs()[0],), {}, bare, limit_s=0.0)
    assert forged.model is original
    assert any("no certificate that holds here: it has none" in note for note in forged.notes)

    paper = certified(REGION, kernel()).verdict
    assert paper is not None and paper.certificate is not None
    foreign = {**paper.certificate, "fingerprint": "another", "device": "Another CPU (64 threads)"}
    theirs = Winner(REGION, kernel(), dataclasses.replace(paper, certificate=foreign))
    forged = apply(original, (inputs()[0],), {}, {REGION.hash: theirs}, limit_s=0.0)
    assert forged.model is original
    assert any("issued on Another CPU (64 threads)" in note for note in forged.notes)
    with pytest.raises(GuardError, match="kernelforge verify"):
        apply(original, (inputs()[0],), {}, {REGION.hash: theirs}, limit_s=0.0, strict=True)


def test_scratch_memory_belongs_to_one_call_at_a_time() -> None:
    made = kernel(
        "scratch[i] = v, scratch[i] / (1.0f + expf(-scratch[i]))",
        extra="// forge: workspace scratch float32 NUMEL\n",
        args="in0, in1, out0, scratch",
    )
    original, (x, _) = Model(), inputs()
    torch.testing.assert_close(installed(original, made)(x), original(x))


def test_winners_that_do_not_occur_leave_the_model() -> None:
    original = nn.Linear(4, 4)
    forged = apply(original, (torch.randn(2, 4),), {}, winner(kernel()), limit_s=0.0)
    assert forged.model is original and "none of the winners' regions" in forged.notes[-1]
    assert apply(original, (torch.randn(2, 4),)).model is original


def test_nothing_is_written_into_the_persons_module() -> None:
    original = Model()
    before = dict(original.__dict__)
    forge(original, kernel())
    assert original.__dict__ == before


def test_the_compiler_can_win_a_region() -> None:
    original, (x, _) = Model(), inputs()
    forged = installed(original, "compiled")
    before = forged.counts()
    torch.testing.assert_close(forged(x), original(x))
    assert forged.counts().hits == before.hits + 1 and forged.counts().fallbacks == {}


def test_torch_compile_finds_registered_winners(own_registry: None) -> None:
    registry.install([certified(REGION, kernel())])
    original, (x, _) = Model(), inputs()
    compiled = torch.compile(original, backend="kernelforge", dynamic=False)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), original(x))
    strict = torch.compile(original, backend="kernelforge", options={"strict": True})
    torch.testing.assert_close(strict(x), original(x))
    with pytest.raises(BackendCompilerFailed, match="no option 'fast'"):
        torch.compile(original, backend="kernelforge", options={"fast": True})(x)


def test_training_through_the_backend_is_pytorchs_own(own_registry: None) -> None:
    registry.install([certified(REGION, kernel())])
    net, x = nn.Sequential(nn.Linear(256, 256), nn.SiLU()), torch.randn(64, 256)
    net(x).sum().backward()
    expected = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    torch.compile(net, backend="kernelforge")(x).sum().backward()
    for p, grad in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, grad)


def test_a_winner_is_a_kernel_or_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="'compiled' or 'eager'"):
        Winner(REGION, "fastest")


def test_only_what_is_installed_enters_the_registry(own_registry: None) -> None:
    forged = forge(Model(), kernel())
    assert (REGION.hash in registry.for_target("cpu")) is forged.installed
