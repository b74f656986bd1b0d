"""What the model really computes: its outputs in float64, and how far two runs are from them."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from ..capture.intact import Inputs, find, own_rng
from ..judge.tolerance import bound, measure, rms
from ..kernels.spec import EPS

# Without a float64 run the two are compared with each other. A network amplifies rounding differences
# layer by layer, so this relative-L2 allowance is in units of the output dtype's epsilon, for all of it.
_UNITS_APART: Final = 1024.0
_MEMORY_SHARE: Final = 0.25
_SLOWDOWN: Final = 4.0  # of a float64 run, generously


def exact_outputs(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    step_s: float,
    limit_s: float = 60.0,
) -> list[torch.Tensor] | None:
    """Output tensors of a float64 copy of the module, or None where there is no such copy to be had.

    Needs a module (a function's globals cannot be copied), memory for it and time to run it.
    """
    if not isinstance(function, nn.Module) or step_s * _SLOWDOWN > limit_s:
        return None
    need = sum(t.numel() * 8 for t in (*function.parameters(), *function.buffers()))
    if need > _MEMORY_SHARE * _free_bytes(function):
        return None
    try:
        double = copy.deepcopy(function).double()
        own_args, own_kwargs = Inputs(args, kwargs).take()
        taken = _upcast((own_args, own_kwargs))
        with own_rng():
            return tensors_of(double(*taken[0], **taken[1]))
    except Exception:  # noqa: BLE001 - a model that insists on its own dtype
        return None


def tensors_of(output: Any) -> list[torch.Tensor]:
    """Every tensor of a (nested) model output, in order, each once."""
    return list({id(t): t for t in find(torch.Tensor, output)}.values())


def compare(
    stock: Sequence[torch.Tensor], forged: Sequence[torch.Tensor], exact: Sequence[torch.Tensor] | None
) -> tuple[float, bool]:
    """(worst error over its bound, whether that and all shapes and dtypes are right).

    With ``exact`` the bound is eager's own error (judging.md's rule on whole outputs); without it, the two
    must be close to each other in relative L2.
    """
    if len(stock) != len(forged):
        return math.inf, False
    truth: Sequence[torch.Tensor | None] = [None] * len(stock)
    if exact is not None and [t.shape for t in exact] == [t.shape for t in stock]:
        truth = exact
    worst = 0.0
    for want, got, real in zip(stock, forged, truth, strict=True):
        if want.shape != got.shape or want.dtype != got.dtype:
            return math.inf, False
        worst = max(worst, _fraction(want, got, real))
    return worst, worst <= 1.0


def _fraction(want: torch.Tensor, got: torch.Tensor, real: torch.Tensor | None) -> float:
    name = str(want.dtype).removeprefix("torch.")
    if name not in EPS or torch.equal(want, got):
        return 0.0 if torch.equal(want, got) else math.inf
    if real is None or not real.is_floating_point():
        reference = want.double()
        error = measure(got, reference, rms(reference))
        return math.inf if error.mask_at >= 0 else error.l2 / (_UNITS_APART * EPS[name])
    scale = rms(real)
    own = measure(want, real.double(), scale, want)
    length = want.numel()  # a network's sums are long: the bound's own allowance for that
    return bound(name, own, (), length, scale).fraction(measure(got, real.double(), scale, want))


def _upcast(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _upcast(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_upcast, value))
    return value


def _free_bytes(module: nn.Module) -> int:
    """Memory that is free where the module lives."""
    gpu = next((p.device for p in module.parameters() if p.is_cuda), None)
    if gpu is not None:
        return torch.cuda.mem_get_info(gpu)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 1 << 32
