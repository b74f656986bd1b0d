"""A small region with kernels for it: right, wrong, and one that needs scratch memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from kernelforge_lab import targets
from kernelforge_lab.deploy.forged import Forged, Recipe
from kernelforge_lab.deploy.winner import Winner
from kernelforge_lab.events import StepMeasured
from kernelforge_lab.exc import ForgeError
from kernelforge_lab.judge.certificate import Certificate
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

REGION = Region.parse(
    "region(in0: f32[64,256], in1: f32[256]) {\n"
    "  t0 = aten.mul.Tensor(in0, in1) : f32[64,256]\n"
    "  t1 = aten.silu.default(t0) : f32[64,256]\n"
    "  return t1\n}"
)
NUMEL = 64 * 256


def model(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x * gain)


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(64, 256), torch.randn(256)


def kernel(body: str = "v / (1.0f + expf(-v))", extra: str = "", args: str = "in0, in1, out0") -> Kernel:
    parameters = "const float* x, const float* g, float* y" + (
        ", float* scratch" if "scratch" in args else ""
    )
    return Kernel(
        f"// forge: target cpu\n{extra}// forge: launch silu args=({args})\n"
        f'extern "C" void silu({parameters}) {{\n'
        "#pragma omp parallel for\n"
        "  for (long i = 0; i < NUMEL; i++) {\n"
        f"    float v = x[i] * g[i % COLS];\n    y[i] = {body};\n  }}\n}}\n",
        REGION.hash,
        "cpu",
    )


def certified(region: Region, made: Kernel | str) -> Winner:
    """A winner as the judge would hand it over: with a certificate, if the kernel can be built at all."""
    if not isinstance(made, Kernel):
        return Winner(region, made)
    target = targets.get(made.target)
    try:
        paper = Certificate.issue(region, made, target.build(made, region), target.device()).as_json()
    except ForgeError:
        paper = None
    return Winner(region, made, Verdict(Status.FASTER, certificate=paper))


def as_installed(
    model: Callable[..., Any],
    args: tuple[torch.Tensor, ...],
    winners: dict[str, Winner],
    measured: StepMeasured | None = None,
    **recipe: Any,
) -> Forged:
    """A forged model whose shadow calls are over, without the A/B that would decide whether it is kept."""
    chosen = Recipe(winners, **recipe)
    built = chosen.build(model)
    with torch.no_grad():
        for _ in range(3):
            built.call(*args)
    return Forged(model, built, recipe=chosen, measured=measured, counts=built.counts)


class FakeLaunch:
    """Stands for a loaded kernel: writes ``factor`` times the right answer through raw addresses."""

    def __init__(self, factor: float = 1.0, error: Exception | None = None) -> None:
        self.factor = factor
        self.error = error
        self.calls = 0

    def __call__(self, x: int, gain: int, out: int) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        result = model(_tensor(x, NUMEL).view(64, 256), _tensor(gain, 256)) * self.factor
        _tensor(out, NUMEL).copy_(result.view(-1))


def _tensor(address: int, numel: int) -> torch.Tensor:
    buffer = (ctypes.c_float * numel).from_address(address)
    return torch.frombuffer(buffer, dtype=torch.float32)


Launch = Callable[..., None]
