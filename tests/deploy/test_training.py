"""A training step with kernels in its forward and backward pass."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from kernelforge_lab.deploy.reference import compare
from kernelforge_lab.deploy.training import (
    ForgedTraining,
    StepVerdict,
    apply_training,
    exact_gradients,
    gradients,
    training_regions,
)
from kernelforge_lab.deploy.winner import Winner
from kernelforge_lab.judge.certificate import Certificate
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer
from kernelforge_lab.targets.cpu import CpuTarget

from ..export.made import kernel_source
from ..export.net import Norm

STEPS = 200


class Layer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = Norm(size), Norm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.gate, self.up, self.down = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Transformer(nn.Module):
    def __init__(self, size: int = 32, words: int = 17) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.layers = nn.Sequential(Layer(size), Layer(size))
        self.norm, self.head = Norm(size), nn.Linear(size, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layers(self.embed(tokens))))


def loss(logits: torch.Tensor) -> torch.Tensor:
    wanted = (torch.arange(logits.shape[0] * logits.shape[1]) * 7 % logits.shape[-1]).view(logits.shape[:2])
    return nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def certified(region: Region, source: str) -> Winner:
    """Made for one thread: on tensors this small, two would mostly wait for each other."""
    kernel, target = Kernel(source, region.hash, "cpu"), CpuTarget(1)
    paper = Certificate.issue(region, kernel, target.build(kernel, region), target.device())
    return Winner(region, kernel, Verdict(Status.FASTER, certificate=paper.as_json()))


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(3)
    return Transformer()


@pytest.fixture(scope="module")
def tokens() -> torch.Tensor:
    return torch.arange(64).view(4, 16) % 17


@pytest.fixture(scope="module")
def winners(model: Transformer, tokens: torch.Tensor) -> dict[str, Winner]:
    found = training_regions(model, (tokens,), loss)
    proposer, made = TemplatesProposer(), {}
    for region, _ in (*found["forward"], *found["backward"]):
        if proposer.refuses(region, "cpu") is None:
            made[region.hash] = certified(region, kernel_source(region))
    return made


@pytest.fixture(scope="module")
def forged(model: Transformer, tokens: torch.Tensor, winners: dict[str, Winner]) -> ForgedTraining:
    return apply_training(model, (tokens,), winners, loss, limit_s=0.0)


def test_both_passes_are_cut_into_regions_and_the_model_is_left_alone(
    model: Transformer, tokens: torch.Tensor
) -> None:
    before = copy.deepcopy(model.state_dict())
    found = training_regions(model, (tokens,), loss)
    forward, backward = (sum(count for _, count in found[side]) for side in ("forward", "backward"))
    assert forward >= 7 and backward >= 7
    assert any("rsqrt" in region.text for region, _ in found["backward"] + found["forward"])
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_gradients_are_as_near_to_float64s_as_eagers(
    model: Transformer, tokens: torch.Tensor, forged: ForgedTraining
) -> None:
    assert forged.verdict.equal and forged.verdict.worst <= 1 and forged.verdict.race is not None
    before = forged.counts()
    mine = gradients(model, forged.compiled, (tokens,), loss)
    theirs, exact = gradients(model, model, (tokens,), loss), exact_gradients(model, (tokens,), loss)
    assert len(mine) == len(list(model.parameters())) and compare(theirs, mine, exact)[1]
    assert not compare(theirs, [g * 1.01 for g in mine], exact)[1]
    assert forged.counts().hits - before.hits >= 14, forged.counts()
    assert forged.counts().fallbacks == before.fallbacks
    assert forged.model is (forged.compiled if forged.verdict.installed else model)


def test_a_step_with_a_wrong_kernel_stays_pytorchs(
    model: Transformer, tokens: torch.Tensor, winners: dict[str, Winner]
) -> None:
    """The guards see it in shadow, so that no wrong gradient is ever used."""
    spoilt = {}
    for name, won in winners.items():
        assert isinstance(won.kernel, Kernel)
        spoilt[name] = certified(won.region, won.kernel.source.replace("out0[", "out0[0 * "))
    forged = apply_training(model, (tokens,), spoilt, loss, limit_s=0.0)
    mine, theirs = (gradients(model, step, (tokens,), loss) for step in (forged.compiled, model))
    assert any(reason.startswith("shadow mismatch") for reason in forged.counts().fallbacks)
    assert compare(theirs, mine, exact_gradients(model, (tokens,), loss))[1]


def test_loss_curves_are_equal_over_200_steps(
    model: Transformer, tokens: torch.Tensor, forged: ForgedTraining
) -> None:
    start, twin = copy.deepcopy(model.state_dict()), copy.deepcopy(model)
    before = forged.counts().hits
    curves = []
    for net, call in ((model, forged.compiled), (twin, twin)):
        optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        curve = []
        for _ in range(STEPS):
            optimiser.zero_grad()
            value = loss(call(tokens))
            value.backward()
            optimiser.step()
            curve.append(float(value.detach()))
        curves.append(torch.tensor(curve))
    model.load_state_dict(start)
    model.zero_grad()
    assert curves[1][-1] < 0.2 * curves[1][0], "it learns"
    # Rounding differences grow with the steps; a wrong gradient would show at once.
    torch.testing.assert_close(curves[0][:20], curves[1][:20], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(curves[0], curves[1], rtol=0.02, atol=1e-3)
    assert forged.counts().hits - before >= 14 * STEPS


def test_without_winners_the_step_is_pytorchs(model: Transformer, tokens: torch.Tensor) -> None:
    forged = apply_training(model, (tokens,), {}, loss, limit_s=0.0)
    assert forged.model is model and "no winner's region" in forged.verdict.message
    assert not StepVerdict(True, 0.0, None, "").installed
