"""The prelude's float functions: as accurate as its header says, and right at the special values."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from .running import run
from .tracing import region_of

# name -> (function, units in the last place allowed)
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "exp": (torch.exp, 2),
    "log": (torch.log, 2),
    "tanh": (torch.tanh, 2),
    "erf": (torch.erf, 2),
    "sigmoid": (torch.sigmoid, 3),
    "log1p": (torch.log1p, 3),
    "expm1": (torch.expm1, 3),
}
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 88.72, -103.9, 1e-42, -1e-42, 3e38]


def samples() -> torch.Tensor:
    """Every magnitude, both signs, and a dense stretch around zero where the formulas switch."""
    generator = torch.Generator().manual_seed(0)
    magnitudes = torch.logspace(-37, 37, 40_000, dtype=torch.float64).float()
    dense = (torch.rand(160_000, generator=generator) * 2 - 1) * torch.tensor([1.0, 12.0, 90.0, 4.0]).repeat(
        40_000
    )
    return torch.cat([magnitudes, -magnitudes, dense])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_units_in_the_last_place(name: str) -> None:
    function, allowed = FUNCTIONS[name]
    x = samples()
    (y,) = run(region_of(function, x), "flat", (x,))
    want = function(x.double())
    rounded = want.float()
    normal = rounded.isfinite() & (rounded.abs() > 1.2e-38)
    unit = 2.0 ** (torch.frexp(rounded.double()).exponent.double() - 24)
    error = ((y.double() - want).abs() / unit)[normal]
    assert normal.sum() > 10_000
    assert float(error.max()) <= allowed, f"{name} at {float(x[normal][error.argmax()])}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_torchs(name: str) -> None:
    function, _ = FUNCTIONS[name]
    x = torch.tensor(SPECIAL)
    (y,) = run(region_of(function, x), "flat", (x,))
    torch.testing.assert_close(y, function(x), rtol=1e-6, atol=1e-44, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats_round_as_torch_does(dtype: torch.dtype) -> None:
    x = samples()
    (y,) = run(region_of(lambda t: (t + 0).to(dtype), x), "flat", (x,))
    assert torch.equal(y, (x + 0).to(dtype))
    every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    (wide,) = run(region_of(lambda t: t.float() * 1, every), "flat", (every,))
    torch.testing.assert_close(wide, every.float(), rtol=0, atol=0, equal_nan=True)
