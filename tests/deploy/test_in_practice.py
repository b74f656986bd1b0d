"""A forged model among everything people do with models."""

from __future__ import annotations

import copy
import io
import os
import pickle
import socket
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from kernelforge_lab.deploy.apply import apply
from kernelforge_lab.deploy.forged import Forged
from kernelforge_lab.exc import GuardError, ProblemError
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

from ..export.made import kernel_source, regions_of
from .helpers import REGION, as_installed, certified, inputs, kernel

SMALL = Region.parse(REGION.text.replace("64,256", "32,256"))


class Scaled(nn.Module):
    """One region (mul·silu, by a weight) and one heavy call."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(256), requires_grad=False)
        self.out = nn.Linear(256, 8).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(nn.functional.silu(x * self.gain))


def kernel_for(region: Region) -> Kernel:
    return Kernel(kernel().source, region.hash, "cpu")


@pytest.fixture
def model() -> Scaled:
    return Scaled()


@pytest.fixture
def forged(model: Scaled) -> Forged:
    return forge(model)


def forge(model: nn.Module, *regions: Region, strict: bool = False) -> Forged:
    winners = {r.hash: certified(r, kernel_for(r)) for r in regions or (REGION,)}
    return as_installed(model, (inputs()[0],), winners, strict=strict)


def served(forged: Forged, x: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether the answer is right, and whether the kernel gave it."""
    before = forged.counts().hits
    torch.testing.assert_close(forged(x), want)
    return forged.counts().hits > before


def misses(forged: Forged) -> list[str]:
    return [reason for reason in forged.counts().fallbacks if reason != "shadow check"]


# ---- shapes ----


def test_one_model_serves_several_shapes_and_counts_calls_of_others(model: Scaled) -> None:
    forged, x = forge(model, REGION, SMALL), inputs()[0]
    assert served(forged, x, model(x)) and not misses(forged)
    for _ in range(2):
        torch.testing.assert_close(forged(x[:32]), model(x[:32]))  # its shadow calls
    assert served(forged, x[:32], model(x[:32])) and served(forged, x, model(x))
    for _ in range(3):
        assert not served(forged, x[:5], model(x[:5]))
    assert forged.counts().fallbacks == {
        "shadow check": 4,
        "no kernel was forged for these inputs (another shape, dtype or autocast)": 3,
    }


def test_more_shapes_than_dynamo_keeps_are_counted_too(model: Scaled) -> None:
    forged, x = forge(model), inputs()[0]
    for rows in range(1, 13):
        assert not served(forged, x[:rows], model(x[:rows]))
    assert sum(forged.counts().fallbacks[reason] for reason in misses(forged)) == 12
    assert served(forged, x, model(x)), "the shape it was forged for stays"


def test_strict_raises_where_pytorch_would_have_to_serve(model: Scaled) -> None:
    forged, x = forge(model, strict=True), inputs()[0]
    assert served(forged, x, model(x))
    with pytest.raises(GuardError, match="no kernel was forged for these inputs"):
        forged(x[:5])
    with pytest.raises(GuardError, match="gradients"):
        forged(x.clone().requires_grad_())


# ---- modes ----


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_every_grad_mode_is_served(forged: Forged, model: Scaled, mode: type) -> None:
    x = inputs()[0]
    with mode():
        forged(x), forged(x)  # inference tensors are another graph, with shadow calls of its own
        assert served(forged, x, model(x))
    assert not misses(forged)


def test_under_autocast_pytorch_serves_in_autocasts_dtype(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        want, got = model(x), forged(x)
    assert got.dtype == want.dtype == torch.bfloat16
    torch.testing.assert_close(got, want)
    assert served(forged, x, model(x)), "and afterwards the kernel again"


def test_thawed_weights_get_their_gradients(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    assert served(forged, x, model(x))
    model.gain.requires_grad_()
    forged(x).sum().backward()
    assert model.gain.grad is not None
    model.gain = nn.Parameter(torch.randn(256))  # another object than at forging
    forged(x).sum().backward()
    assert model.gain.grad is not None and len(misses(forged)) == 1
    model.requires_grad_(False)
    assert served(forged, x, model(x))


# ---- weights ----


def test_weights_are_the_models_own_whenever_they_change(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    model.gain.data = torch.randn(256)
    assert served(forged, x, model(x))
    model.gain = nn.Parameter(torch.randn(256), requires_grad=False)
    assert served(forged, x, model(x))
    forged.load_state_dict({name: t * 2 for name, t in forged.state_dict().items()})
    assert served(forged, x, model(x))
    optimiser = torch.optim.SGD([model.gain], lr=0.5)
    model.gain.grad = torch.ones(256)
    optimiser.step()
    assert served(forged, x, model(x))


# ---- aliasing and in-place ----


class Writes(nn.Module):
    """Writes into its input, returns it, a view of it, and a value twice."""

    def forward(self, x: torch.Tensor, gain: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x.add_(1)
        y = nn.functional.silu(x * gain)
        return x, x[1:], y, y


def test_aliases_and_writes_are_as_in_eager() -> None:
    model, (x, gain) = Writes(), inputs()
    ((region, _),) = regions_of(model, x.clone(), gain)
    winner = certified(region, Kernel(kernel_source(region), region.hash, "cpu"))
    forged = as_installed(model, (x.clone(), gain), {region.hash: winner})
    mine, theirs = x.clone(), x.clone()
    before = forged.counts().hits
    got, want = forged(mine, gain), model(theirs, gain)
    assert forged.counts().hits == before + 1
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(mine, theirs)
    assert got[0] is mine and got[1].data_ptr() == mine[1:].data_ptr()
    assert got[2].data_ptr() == got[3].data_ptr()
    kept = got[2].clone()
    got[2].zero_()
    again = forged(x.clone(), gain)
    torch.testing.assert_close(again[2], kept)


# ---- hooks ----


def test_hooks_fire_whenever_they_were_added(model: Scaled) -> None:
    first = model.out.register_forward_hook(lambda _module, _args, out: out + 1)
    forged, x = forge(model), inputs()[0]
    assert served(forged, x, model(x))
    second = model.register_forward_pre_hook(lambda _module, args: (args[0] * 2,))
    assert not served(forged, x, model(x)) and "hooks" in misses(forged)[0]
    second.remove()
    assert served(forged, x, model(x))
    first.remove()
    assert not served(forged, x, model(x))


def test_hooks_that_count_calls_count_all_of_them(model: Scaled) -> None:
    fired: list[str] = []
    model.out.register_forward_hook(lambda *_: fired.append("once"))
    forged, x = forge(model), inputs()[0]
    fired.clear()
    for _ in range(3):
        forged(x)
    assert fired == ["once"] * 3


# ---- copies ----


def test_a_deep_copy_has_weights_and_counts_of_its_own(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    twin = copy.deepcopy(forged)
    twin.gain.mul_(3)
    assert twin.gain is not model.gain and twin.installed
    want = twin.original(x)
    for _ in range(2):
        torch.testing.assert_close(twin(x), want)
    assert served(twin, x, want) and served(forged, x, model(x))


def test_a_forged_model_is_pickled_and_saved(forged: Forged, model: Scaled) -> None:
    x, file = inputs()[0], io.BytesIO()
    torch.save(forged, file)
    file.seek(0)
    for again in (pickle.loads(pickle.dumps(forged)), torch.load(file, weights_only=False)):
        again(x), again(x)
        assert again.installed and served(again, x, model(x))


def test_it_looks_like_the_model(forged: Forged, model: Scaled) -> None:
    assert forged.state_dict().keys() == model.state_dict().keys()
    assert forged.eval() is forged and not model.training
    assert forged.train() is forged and model.training
    forged.note = "hello"
    assert model.note == "hello" and forged.note == "hello"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = forged.nothing


# ---- around it ----


def test_torch_compile_around_it_leaves_the_kernels_in_place(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    outer = torch.compile(lambda x: forged(x + 1) * 2, backend="eager")
    with torch.no_grad():
        outer(x)
        before = forged.counts().hits
        torch.testing.assert_close(outer(x), model(x + 1) * 2)
    assert forged.counts().hits == before + 1


@pytest.fixture
def process_group() -> Iterator[None]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(os.name == "nt", reason="gloo")
def test_a_ddp_module_is_forged(process_group: None) -> None:
    inner = Scaled()
    inner.out.requires_grad_()  # DDP refuses a module in which nothing is trained
    model = nn.parallel.DistributedDataParallel(inner)
    forged, x = forge(model), inputs()[0]
    with torch.no_grad():
        assert served(forged, x, inner(x))
    forged(x).sum().backward()
    assert inner.out.weight.grad is not None and "gradients" in misses(forged)[0]


# ---- on demand ----


def test_shadow_on_demand_compares_with_pytorch_again(forged: Forged, model: Scaled) -> None:
    x = inputs()[0]
    before = forged.counts()
    assert forged.shadow(3) is forged
    for _ in range(3):
        assert torch.equal(forged(x), model(x))
    after = forged.counts()
    assert after.hits == before.hits
    assert after.fallbacks["shadow check"] == before.fallbacks["shadow check"] + 3
    assert served(forged, x, model(x))


def test_a_kernel_gone_bad_is_found_in_shadow(forged: Forged, model: Scaled) -> None:
    """Shadow calls at forging saw small numbers: this one overflows where PyTorch does not."""
    made = kernel("v < 50.0f ? v / (1.0f + expf(-v)) : 0.0f")
    bad = as_installed(model, (inputs()[0],), {REGION.hash: certified(REGION, made)})
    x = torch.full((64, 256), 1000.0)
    assert not torch.allclose(bad(x), model(x))
    assert torch.equal(bad.shadow()(x), model(x))
    assert any(reason.startswith("shadow mismatch") for reason in misses(bad))
    assert torch.equal(bad.shadow()(x), model(x)), "off for good"


def test_cuda_graphs_are_refused_on_a_cpu(model: Scaled) -> None:
    with pytest.raises(ProblemError, match="graphs=True records CUDA graphs, and the target is cpu"):
        apply(model, (inputs()[0],), {}, {REGION.hash: certified(REGION, kernel())}, graphs=True)
