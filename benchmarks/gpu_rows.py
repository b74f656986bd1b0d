"""The regions of the GPU benchmark: what they compute, on what, and which libraries offer the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

Function = Callable[..., torch.Tensor]
EPS = 1e-6


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As transformers writes it for Gemma: float32 inside, the power for the root."""
    wide = x.float()
    scaled = wide * torch.pow(wide.pow(2).mean(-1, keepdim=True) + EPS, -0.5)
    return (scaled * weight.float()).type_as(x)


def group_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.group_norm(x, 32, weight, bias)


def group_norm_silu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 32, weight, bias))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1, dtype=torch.float32).to(torch.bfloat16)


def gelu_up(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.gelu(gate, approximate="tanh") * up


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


@dataclass(frozen=True)
class Row:
    """A region in bf16. ``large`` rows are those whose gain over eager the project promises."""

    name: str
    function: Function
    shapes: tuple[tuple[int, ...], ...]
    kind: str
    large: bool = True

    def inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(torch.randn(shape, device="cuda").bfloat16() for shape in self.shapes)


def _norm(name: str, function: Function, *shape: int, large: bool = True) -> Row:
    return Row(name, function, (shape, (shape[1],), (shape[1],)), "group_norm", large)


ROWS = (
    _norm("group_norm 1×512×64×64", group_norm, 1, 512, 64, 64, large=False),
    _norm("group_norm 1×512×256×256", group_norm, 1, 512, 256, 256),
    _norm("group_norm+SiLU 1×256×512×512", group_norm_silu, 1, 256, 512, 512),
    _norm("group_norm 1×128×512×512", group_norm, 1, 128, 512, 512),
    Row("RMSNorm 512×2304", rms_norm, ((512, 2304), (2304,)), "rms_norm", large=False),
    Row("RMSNorm 4096×4096", rms_norm, ((4096, 4096), (4096,)), "rms_norm"),
    Row("RMSNorm 2048×8192", rms_norm, ((2048, 8192), (8192,)), "rms_norm"),
    Row("softmax 4096×2304", softmax, ((4096, 2304),), "softmax", large=False),
    Row("softmax 2048×8192", softmax, ((2048, 8192),), "softmax"),
    Row("GELU(tanh)·up 4096×9216", gelu_up, ((4096, 9216), (4096, 9216)), "gelu_up"),
    Row("RoPE 1×8×4096×256", rope, ((1, 8, 4096, 256), (1, 1, 4096, 256), (1, 1, 4096, 256)), "rope"),
)


def libraries(row: Row) -> dict[str, Function]:
    """Ready-made implementations of a row's function that can be imported here.

    Liger's RoPE turns queries and keys together, in place, and is therefore no match; its GroupNorm was not
    tried.
    """
    found: dict[str, Function] = {}
    if row.kind == "rms_norm":
        found["F.rms_norm"] = lambda x, weight: F.rms_norm(x, (x.shape[-1],), weight, EPS)
    with contextlib.suppress(ImportError):
        found |= _liger(row)
    return found


def _liger(row: Row) -> dict[str, Function]:
    from liger_kernel.ops.geglu import LigerGELUMulFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    offers: dict[str, Function] = {
        "rms_norm": lambda x, w: LigerRMSNormFunction.apply(x, w, EPS, 0.0, "gemma"),
        "gelu_up": LigerGELUMulFunction.apply,
        "softmax": LigerSoftmaxFunction.apply,
    }
    return {"Liger": offers[row.kind]} if row.kind in offers else {}
