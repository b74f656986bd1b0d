"""The end-to-end A/B: only a surely faster and equal model is installed."""

from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from kernelforge_lab.deploy.measure import measure_step, race
from kernelforge_lab.deploy.memory import peak_bytes
from kernelforge_lab.deploy.reference import compare, exact_outputs, tensors_of


@given(st.floats(0.3, 3.0), st.floats(0, 0.05), st.integers(0, 99))
def test_the_interval_holds_the_true_ratio(true: float, noise: float, seed: int) -> None:
    draw = random.Random(seed)
    result = race(lambda: true * math.exp(draw.gauss(0, noise)), lambda: 1.0, limit_s=0.0)
    assert result.low <= result.ratio <= result.high
    assert abs(math.log(result.ratio / true)) <= 3 * noise + 1e-9


def test_a_drifting_clock_does_not_make_equal_sides_differ() -> None:
    now = [1.0]

    def slower_and_slower() -> float:
        now[0] *= 1.01
        return now[0]

    result = race(slower_and_slower, slower_and_slower, limit_s=0.0)
    assert abs(math.log(result.ratio)) < 1e-3


class Wrong(nn.Module):
    def __init__(self, error: float) -> None:
        super().__init__()
        self.linear, self.error = nn.Linear(32, 32), error

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = self.linear(x)
        return {"y": y * (1 + self.error), "index": y.argmax(-1)}


@pytest.mark.parametrize("error, equal", [(0.0, True), (1e-7, True), (1e-4, False), (math.nan, False)])
def test_outputs_are_compared_with_a_float64_run(error: float, equal: bool) -> None:
    torch.manual_seed(0)
    right, wrong, x = Wrong(0.0), Wrong(error), torch.randn(16, 32)
    wrong.linear = right.linear
    with torch.no_grad():
        exact = exact_outputs(right, (x,), {}, step_s=0.01)
        assert exact is not None and exact[0].dtype == torch.float64
        assert right.linear.weight.dtype == torch.float32
        assert compare(tensors_of(right(x)), tensors_of(wrong(x)), exact)[1] is equal


def test_without_a_float64_run_the_two_are_compared_with_each_other() -> None:
    a = torch.randn(1000) * 1e-15
    assert compare([a], [a * (1 + 1e-6)], None)[1]
    assert not compare([a], [a * 1.01], None)[1]
    assert compare([a], [a.double()], None) == (math.inf, False)
    assert compare([a], [], None) == (math.inf, False)


def test_a_function_has_no_float64_copy() -> None:
    assert exact_outputs(lambda x: x, (torch.ones(2),), {}, step_s=0.0) is None


def test_not_equal_is_not_installed_however_fast() -> None:
    x = torch.randn(40, 40)
    with torch.no_grad():
        measured = measure_step(lambda x: (x @ x @ x).sum(0), lambda x: x[0], (x,), {}, limit_s=0.0)
    assert not measured.equal and not measured.installed
    assert "outputs differ" in measured.message


def test_the_same_model_is_not_faster_than_itself() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        return x.sin()  # small enough for one thread

    with torch.no_grad():
        measured = measure_step(work, work, (torch.randn(1000),), {}, limit_s=0.2)
    assert measured.equal and measured.max_error == 0.0 and measured.low <= measured.speedup <= measured.high
    assert measured.installed == (measured.low > 1.0)


def test_peak_memory_counts_what_is_alive_at_once() -> None:
    x = torch.ones(1000, 1000)
    assert peak_bytes(lambda: x + 1) == pytest.approx(4e6, rel=0.01)
    assert peak_bytes(lambda: (x + 1) + (x + 2)) == pytest.approx(12e6, rel=0.01)
