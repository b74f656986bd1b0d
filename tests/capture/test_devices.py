"""Where a call runs decides the target, and a target that is elsewhere is said so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernelforge_lab.capture import capture, devices, roofline
from kernelforge_lab.capture.profile import Clock, Sample
from kernelforge_lab.capture.workload import Roofs
from kernelforge_lab.exc import CaptureError
from kernelforge_lab.kernels.region import Region

X = torch.randn(4, 8)


class FakeDevice:
    type = "cuda"


class FakeGpuTensor(torch.Tensor):
    """Says that it is on a GPU, on a machine without one."""

    device = FakeDevice()  # type: ignore[assignment]
    is_cuda = True  # type: ignore[assignment]


def on_gpu() -> torch.Tensor:
    return X.clone().as_subclass(FakeGpuTensor)


def test_the_inputs_device_is_the_target() -> None:
    assert devices.target_of(torch.relu, (X,), {}) == "cpu"
    assert devices.target_of(torch.relu, (on_gpu(),), {}) == "cuda"
    assert devices.target_of(torch.relu, (X, on_gpu()), {}) == "cuda"
    assert devices.target_of(torch.relu, (), {"deep": {"in": [on_gpu()]}}) == "cuda"


def test_without_inputs_the_model_says_where_it_is() -> None:
    assert devices.target_of(nn.Linear(2, 2), (3,), {}) == "cpu"
    assert devices.target_of(lambda: 3, (), {}) == "cpu"


def test_a_device_that_no_kernel_runs_on_is_named() -> None:
    with pytest.raises(CaptureError, match=r"runs on 'meta'.*cpu, cuda"):
        devices.target_of(torch.relu, (torch.empty(2, device="meta"),), {})


def test_a_target_that_is_not_where_model_and_inputs_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CaptureError, match="target is cpu, but the inputs are on cuda"):
        devices.check(torch.relu, (on_gpu(),), {}, "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(CaptureError, match=r"the model is on cpu\..*\.to\('cuda'\)"):
        devices.check(nn.Linear(2, 2), (on_gpu(),), {}, "cuda")
    devices.check(torch.relu, (X, on_gpu()), {}, "cuda")  # positions on the host are usual


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_the_cuda_target_says_what_to_do() -> None:
    with pytest.raises(CaptureError, match=r"sees none.*kernelforge doctor"):
        capture(torch.relu, (X,), target="cuda")


@pytest.mark.parametrize(
    "busy, cost_us",
    [(1.0, 3.0), (0.0, 10.0), (0.5, 6.5)],
    ids=["the device is the bottleneck", "the host is", "both"],
)
def test_a_call_costs_the_step_what_the_slower_of_host_and_device_takes(busy: float, cost_us: float) -> None:
    call: Any = None
    assert Sample(call, 10.0, 3.0).cost_us(busy) == cost_us
    assert Sample(call, 3.0, 10.0).cost_us(busy) == 10.0


class FakeCudaClock:
    """Every call takes as long as the host said it would queue it, doubled."""

    def __init__(self) -> None:
        self.host_s: list[float] = []

    def time(self, call: Any, host_s: float) -> tuple[Any, float]:
        self.host_s.append(host_s)
        return call(), 2 * host_s


def test_alone_every_call_has_a_device_time_beside_the_hosts() -> None:
    clock, fake = Clock(), FakeCudaClock()
    step: Any = type("Step", (), {"region": None})()
    timed = clock._wrap(torch.relu, step)
    timed(X)
    clock.alone = fake  # type: ignore[assignment]
    assert torch.equal(timed(X), X.relu())
    (sample,) = clock.samples()
    assert fake.host_s == [pytest.approx(sample.time_us / 1e6)]
    assert sample.device_us == pytest.approx(2 * sample.time_us)


def test_the_limits_of_cpu_and_gpu_are_kept_apart(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = Roofs(10.0, 100.0), Roofs(4000.0, 50_000.0, half_gflops=800_000.0)
    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path))
    monkeypatch.setattr(roofline, "_measure", lambda: cpu)
    monkeypatch.setattr(roofline, "_measure_cuda", lambda: gpu)
    monkeypatch.setattr(roofline, "fingerprint_cuda", lambda: "gpu")
    for _ in range(2):
        assert (roofline.measure(), roofline.measure(target="cuda")) == (cpu, gpu)


def test_products_of_16_bit_numbers_have_a_limit_of_their_own() -> None:
    roofs = Roofs(1e9, 1.0, half_gflops=10.0)

    def product(dtype: str) -> Region:
        return Region.parse(
            f"region(in0: {dtype}[8,8], in1: {dtype}[8,8]) {{\n"
            f"  t0 = aten.mm.default(in0, in1) : {dtype}[8,8]\n  return t0\n}}"
        )

    assert roofline.floor_us(product("f32"), roofs) == pytest.approx(1024 / 1e3)
    assert roofline.floor_us(product("bf16"), roofs) == pytest.approx(1024 / 1e4)
