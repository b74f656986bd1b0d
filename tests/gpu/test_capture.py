"""Capture, search and installing on a GPU: the whole way of a small model."""

from __future__ import annotations

import math

import pytest

pytestmark = pytest.mark.gpu


def model(width: int = 1024):  # type: ignore[no-untyped-def]
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.Parameter(torch.ones(width))
            self.up, self.gate = nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = x.float()
            normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
            h = (normed * self.norm.float()).to(x.dtype)
            return x + torch.nn.functional.gelu(self.gate(h), approximate="tanh") * self.up(h)

    torch.manual_seed(0)
    return Block().cuda().bfloat16().eval().requires_grad_(False)


def inputs(rows: int, width: int = 1024):  # type: ignore[no-untyped-def]
    import torch

    return torch.randn(rows, width, device="cuda").bfloat16()


def test_device_times_add_up_to_a_busy_step() -> None:
    from kernelforge_lab.capture import capture

    workload = capture(model(), (inputs(32768),), target="cuda")
    assert 0.7 < workload.busy <= 1.0
    assert 0.5 < sum(r.share for r in workload.regions) + sum(v.share for v in workload.vendor) <= 1.01
    for item in workload.regions:
        assert item.eligible and item.time_us > 0.5 * item.floor_us
    assert not workload.advice or "launch-bound" not in workload.advice
    assert workload.ceiling > 1.03


def test_a_small_step_is_launch_bound_and_says_so() -> None:
    from kernelforge_lab.capture import capture

    workload = capture(model(), (inputs(4),), target="cuda")
    assert workload.busy < 0.6
    assert "launch-bound" in workload.advice


def test_the_roofs_are_a_gpus() -> None:
    from kernelforge_lab.capture import roofline

    roofs = roofline.measure(target="cuda")
    assert roofs.bandwidth_gbps > 200
    assert roofs.half_gflops > roofs.gflops > 1000
    assert 0.5 < roofs.call_us < 20
    assert roofline.measure(target="cuda") == roofs


def test_random_numbers_of_the_gpu_are_as_before() -> None:
    import torch

    from kernelforge_lab.capture import capture

    x = inputs(8)
    torch.cuda.manual_seed(3)
    state = torch.cuda.get_rng_state()
    capture(lambda x: torch.nn.functional.dropout(x, 0.5) * 2 + 1, (x,), target="cuda")
    assert torch.equal(state, torch.cuda.get_rng_state())


def test_a_model_is_forged_end_to_end() -> None:
    import torch

    import kernelforge_lab

    net, x = model(), inputs(32768)
    with torch.no_grad():
        want = net(x)
        run = kernelforge_lab.forge(net, x, trials=6, minutes=1.5, wait=True)
        assert run.options.target == "cuda"
        assert run.state == "finished", run.history.message
        fast = run.apply()
        torch.testing.assert_close(fast(x), want, rtol=2e-2, atol=2e-2)
    step = run.history.step
    assert step is not None and step["equal"] and math.isfinite(step["speedup"])
    assert step["stock_bytes"] > 0 and step["forged_bytes"] > 0
    judged = [node.verdict for node in run.history.nodes.values() if node.verdict is not None]
    assert any(verdict.status.is_correct and verdict.timing for verdict in judged)


def test_inputs_elsewhere_than_the_target_are_refused() -> None:
    from kernelforge_lab.capture import capture
    from kernelforge_lab.exc import CaptureError

    with pytest.raises(CaptureError, match="inputs are on cpu"):
        capture(model(), (inputs(4).cpu(),), target="cuda")


def test_peak_memory_is_the_devices() -> None:
    import torch

    from kernelforge_lab.deploy.memory import peak_bytes

    x = torch.ones(1 << 20, device="cuda")
    assert peak_bytes(lambda: (x + 1) + (x + 2), "cuda") == 3 * (4 << 20)
