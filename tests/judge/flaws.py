"""The row functions written out in torch, with a slot for each way that real kernels go wrong (or differ)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .numerics import GROUPS

Sum = Callable[[Tensor], Tensor]


def plain_sum(x: Tensor) -> Tensor:
    """One running sum in float32, as a loop in C does (torch's own cumsum runs in float64)."""
    return torch.from_numpy(np.add.accumulate(x.numpy(), axis=-1, dtype=np.float32)[..., -1:].copy())


def lanes_sum(x: Tensor) -> Tensor:
    """Sixteen running sums, added up at the end."""
    count = -(-x.shape[-1] // 16) * 16
    padded = torch.nn.functional.pad(x, (0, count - x.shape[-1]))
    return plain_sum(plain_sum(padded.view(*x.shape[:-1], -1, 16).transpose(-1, -2)).squeeze(-1))


def backwards_sum(x: Tensor) -> Tensor:
    return plain_sum(x.flip(-1))


def half_sum(dtype: torch.dtype) -> Sum:
    """A tree of additions that rounds each to a half: the mildest way to accumulate in too few bits."""

    def tree(x: Tensor) -> Tensor:
        x = x.to(dtype)
        while x.shape[-1] > 1:
            if x.shape[-1] % 2:
                x = torch.nn.functional.pad(x, (0, 1))
            x = x[..., 0::2] + x[..., 1::2]
        return x.float()

    return tree


def without_last(x: Tensor) -> Tensor:
    return plain_sum(x[..., :-1])


def without_middle(x: Tensor) -> Tensor:
    """One element between two threads' shares is left out."""
    middle = x.shape[-1] // 2
    return plain_sum(torch.cat([x[..., :middle], x[..., middle + 1 :]], -1))


def wavy_exp(x: Tensor) -> Tensor:
    """Relative error up to 1e-4, as a short polynomial leaves it."""
    return x.exp() * (1 + 1e-4 * (x.nan_to_num(0, 0, 0) * 37).cos())


def high_exp(x: Tensor) -> Tensor:
    """Relative error 1e-4, always the same way."""
    return x.exp() * (1 + 1e-4)


def careful_exp(x: Tensor) -> Tensor:
    """A float32 exp that is off by up to one and a half units."""
    return x.exp() * (1 + 1.5 * 2.0**-24 * (x.nan_to_num(0, 0, 0) * 1e4).sin().sign())


def tf32(x: Tensor) -> Tensor:
    """The ten mantissa bits that a tensor core reads."""
    bits = x.float().view(torch.int32)
    return (bits & ~0x1FFF).view(torch.float32)


def same(x: Tensor) -> Tensor:
    return x


def one_off(x: Tensor) -> Tensor:
    """One element of the output is one per cent too large."""
    changed = x.clone()
    changed.view(-1)[2 * x.numel() // 3] *= 1.01
    return changed


@dataclass(frozen=True)
class Way:
    """How a kernel computes: every slot is right by default. ``eps_factor`` scales the epsilon of a norm."""

    sum: Sum = lanes_sum
    exp: Callable[[Tensor], Tensor] = torch.exp
    read: Callable[[Tensor], Tensor] = same
    finish: Callable[[Tensor], Tensor] = same
    eps_factor: float = 1.0


def compute(function: str, inputs: list[Tensor], way: Way) -> Tensor:
    """What a kernel that works in ``way`` would give, rounded to the dtype of its first input."""
    x, dtype = way.read(inputs[0].float()), inputs[0].dtype
    rest = [t.float() for t in inputs[1:]]
    return way.finish(_FORMULAS[function](x, rest, way)).to(dtype)


def _softmax(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    powers = way.exp(x - x.amax(-1, keepdim=True))
    return powers / way.sum(powers)


def _logsumexp(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    top = x.amax(-1, keepdim=True)
    return way.sum(way.exp(x - top)).log() + top


def _mean(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    return way.sum(x) / x.shape[-1]


def _var(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    centred = x - _mean(x, [], replace(way, sum=lanes_sum))
    return way.sum(centred * centred) / x.shape[-1]


def _layer_norm(x: Tensor, rest: list[Tensor], way: Way) -> Tensor:
    centred = x - _mean(x, [], replace(way, sum=lanes_sum))
    weight, bias = rest
    return centred * (_var(x, [], way) + 1e-5 * way.eps_factor).rsqrt() * weight + bias


def _group_norm(x: Tensor, rest: list[Tensor], way: Way) -> Tensor:
    batch, channels, size = x.shape
    plain = (torch.ones(()), torch.zeros(()))
    flat = _layer_norm(x.reshape(batch, GROUPS, -1), list(plain), way)
    weight, bias = (t.view(1, channels, 1) for t in rest)
    return flat.view(batch, channels, size) * weight + bias


def _rms_norm(x: Tensor, rest: list[Tensor], way: Way) -> Tensor:
    scaled = x * (way.sum(x * x) / x.shape[-1] + 1e-6 * way.eps_factor).rsqrt()
    return scaled * rest[0]


def _silu(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    return x / (1 + way.exp(-x))


def _gelu(x: Tensor, _: list[Tensor], way: Way) -> Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x / (1 + way.exp(-2 * inner))


_FORMULAS: dict[str, Callable[[Tensor, list[Tensor], Way], Tensor]] = {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "sum": lambda x, _, way: way.sum(x),
    "mean": _mean,
    "var": _var,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "rms_norm": _rms_norm,
    "silu": _silu,
    "gelu": _gelu,
}

SUMMING = ("softmax", "logsumexp", "sum", "mean", "var", "layer_norm", "group_norm", "rms_norm")
EXPONENTIAL = ("softmax", "logsumexp", "silu", "gelu")
NORMS = ("layer_norm", "group_norm", "rms_norm")
ALL = tuple(_FORMULAS)

# How kernels may differ; the functions that can tell.
HONEST: dict[str, tuple[Way, tuple[str, ...]]] = {
    "sixteen running sums": (Way(), ALL),
    "an exp within 1.5 units": (Way(exp=careful_exp), EXPONENTIAL),
    "one running sum": (Way(sum=plain_sum), SUMMING),
    "summed backwards": (Way(sum=backwards_sum), SUMMING),
}
# One running float32 sum of more elements than this loses digits that eager keeps.
ONE_SUM_LONGEST = 4097
ONE_SUM = ("one running sum", "summed backwards")

FLAWS: dict[str, tuple[Way, tuple[str, ...]]] = {
    "inputs cut to TF32": (Way(read=tf32), ALL),
    "sums in float16": (Way(sum=half_sum(torch.float16)), SUMMING),
    "sums in bfloat16": (Way(sum=half_sum(torch.bfloat16)), SUMMING),
    "last element left out": (Way(sum=without_last), SUMMING),
    "middle element left out": (Way(sum=without_middle), SUMMING),
    "exp off by 1e-4": (Way(exp=wavy_exp), EXPONENTIAL),
    # It cancels in a softmax.
    "exp high by 1e-4": (Way(exp=high_exp), ("logsumexp", "silu", "gelu")),
    "epsilon ten times smaller": (Way(eps_factor=0.1), NORMS),
    "epsilon twice as large": (Way(eps_factor=2.0), NORMS),
    "one element off by 1 %": (Way(finish=one_off), ALL),
}
# What is still wrong after a result is rounded to 16 bits.
COARSE = (
    "last element left out",
    "middle element left out",
    "epsilon ten times smaller",
    "epsilon twice as large",
)
