"""Regions the templates must write, by name: functions with the inputs they are traced on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., Any]
    inputs: tuple[torch.Tensor, ...]


def _normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, generator=generator).to(dtype)


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scaled = wide * torch.pow(wide.pow(2).mean(-1, keepdim=True) + 1e-6, -0.5)
    return (scaled * w.float()).type_as(x)


def _add_rms(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + y
    return _rms_norm(h, w), h


def _rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


def _norm_rope(x: torch.Tensor, w: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    heads = x.view(1, 24, 4, 16)
    return _rope(_rms_norm(heads, w).transpose(1, 2), cos, sin)


def _group_norm_silu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 4, w, b))


def _batch_norm_relu_add(x: torch.Tensor, r: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.relu(F.batch_norm(x, m, v.abs() + 0.5, m, v) + r)


def _masked_softmax(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.masked_fill(~keep, float("-inf")) * 0.125, dim=-1)


def _decay_mask(g: torch.Tensor) -> torch.Tensor:
    gap = g.unsqueeze(-1) - g.unsqueeze(-2)
    return torch.tril(torch.exp(torch.tril(gap)), diagonal=-1)


def _many(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(-1), x.mean((0, 2)), x.amax(1), x.argmax(-1), x.var(-1), x > 0


def _mixed(i: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.where(b, i, -i), (i * 3) // 2, i % 4, d + i, b & (i > 1), i.to(torch.int32) + 1


def _norm_chain(
    x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    h = y + _rms_norm(x, w)
    return h, _rms_norm(h, v)


def _deep_cat(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.cat([a * 2, b.exp(), c - 1, a[:, :3]], dim=1) + 1


def _flips(x: torch.Tensor) -> torch.Tensor:
    return torch.flip(x, (1,)).repeat(2, 1, 3) + F.pad(x.repeat(2, 1, 3), (0, 0, 1, -1), value=2.0)


def _interleave(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x * 2
    out[:, 1:19:3] = y
    return out + 1


def cases() -> list[Case]:
    bf16, f16, f64 = torch.bfloat16, torch.float16, torch.float64
    n = _normal
    keep = torch.rand(3, 1, 9, 17, generator=torch.Generator().manual_seed(1)) > 0.4
    keep[..., 0] = True
    return [
        Case("gelu_mul", lambda x, u: F.gelu(x, approximate="tanh") * u, (n(33, 70), n(33, 70))),
        Case("gelu_exact_bf16", F.gelu, (n(8, 257, dtype=bf16),)),
        Case("silu_mul_bf16", lambda x, u: F.silu(x) * u, (n(7, 129, dtype=bf16), n(7, 129, dtype=bf16))),
        Case("softmax", lambda x: torch.softmax(x, -1), (n(37, 1000),)),
        Case("softmax_dim1", lambda x: torch.softmax(x, 1), (n(3, 19, 40),)),
        Case("log_softmax_f16", lambda x: torch.log_softmax(x, -1), (n(5, 77, dtype=f16),)),
        Case("masked_softmax", _masked_softmax, (n(3, 4, 9, 17), keep)),
        Case("layer_norm", lambda x, w, b: F.layer_norm(x, (96,), w, b), (n(10, 7, 96), n(96), n(96))),
        Case("layer_norm_2d", lambda x: F.layer_norm(x, (6, 8)), (n(5, 6, 8),)),
        Case("add_rms", _add_rms, (n(20, 300), n(20, 300), n(300))),
        Case("add_rms_bf16", _add_rms, (n(4, 2050, dtype=bf16), n(4, 2050, dtype=bf16), n(2050, dtype=bf16))),
        Case("norm_chain", _norm_chain, (n(6, 90), n(6, 90), n(90), n(90))),
        Case("rope", _rope, (n(1, 4, 24, 16), n(1, 1, 24, 16), n(1, 1, 24, 16))),
        Case("norm_rope", _norm_rope, (n(1, 24, 64), n(16), n(1, 1, 24, 16), n(1, 1, 24, 16))),
        Case("group_norm_silu", _group_norm_silu, (n(2, 16, 5, 6), n(16), n(16))),
        Case(
            "group_norm_channels_last",
            _group_norm_silu,
            (n(2, 16, 5, 6).to(memory_format=torch.channels_last), n(16), n(16)),
        ),
        Case("batch_norm_relu", _batch_norm_relu_add, (n(2, 8, 6, 7), n(2, 8, 6, 7), n(8), n(8))),
        Case(
            "batch_norm_channels_last",
            _batch_norm_relu_add,
            (*(n(2, 8, 6, 7).to(memory_format=torch.channels_last) for _ in "xr"), n(8), n(8)),
        ),
        Case("decay_mask", _decay_mask, (n(2, 3, 12),)),
        Case("many_reductions", _many, (n(4, 6, 50),)),
        Case(
            "mixed_types",
            _mixed,
            (torch.arange(-8, 12).view(4, 5), torch.rand(4, 5) > 0.5, n(4, 5, dtype=f64)),
        ),
        Case("cat", _deep_cat, (n(3, 5, 4), n(3, 2, 4), n(3, 7, 4))),
        Case("flip_repeat_pad", _flips, (n(2, 5, 3),)),
        Case("slice_scatter_step", _interleave, (n(4, 24), n(4, 6))),
        Case("transpose", lambda x, y: x.transpose(0, 1).contiguous() + y, (n(70, 45), n(45, 70))),
        Case("sum_all", lambda x: x.sum(), (n(5000),)),
        Case("mean_of_everything", lambda x: (x - x.mean()).abs().mean(), (n(31, 33),)),
        Case("sum_dim0", lambda x: (x * 2).sum(0), (n(300, 65),)),
        Case("expanded_input", lambda x, y: x * y, (n(1, 9).expand(6, 9), n(6, 9))),
        Case("strided_input", lambda x: x.exp() + 1, (n(12, 20)[::2, 3:15:3],)),
        Case("scalar", lambda x, y: x * y + 1, (n(1).view(()), n(1).view(()))),
        Case("arange_mask", lambda x: torch.where(torch.arange(9) < 4, x, -1.0), (n(5, 9),)),
        Case("logsumexp", lambda x: torch.logsumexp(x, -1), (n(6, 40),)),
        Case(
            "upsample", lambda x: F.silu(F.interpolate(x, scale_factor=2.0, mode="nearest")), (n(2, 3, 4, 5),)
        ),
        Case("double_norm", lambda x: F.layer_norm(x, (30,)), (n(4, 30, dtype=f64),)),
        Case("any_all", lambda x: ((x > 1).any(-1), (x > -3).all(0), x.prod(-1)), (n(6, 9),)),
        Case("std_min", lambda x: (x.std(0), x.min(-1).values, x.argmin(0)), (n(7, 33),)),
        Case(
            "stack_split",
            lambda x: torch.stack([c * k for k, c in enumerate(x.split(4, -1))]),
            (n(3, 10, 12),),
        ),
        Case("softplus_decay", lambda a, b: -a.exp() * F.softplus(b + 0.5), (n(4), n(6, 4, dtype=bf16))),
    ]
