"""What the statistics promise, on synthetic noise (seeded by hypothesis, no clock involved)."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelforge_lab.judge.statistics import (
    LAUNCH_BOUND_US,
    QUADS_MIN,
    Interval,
    bootstrap,
    is_faster,
    median,
    rank_us,
    surely_worse,
)

seeds = st.integers(0, 2**32 - 1)


def quads(speedup: float, noise: float, count: int, seed: int) -> list[float]:
    """Log-ratios as paired blocks give them: each of four blocks off by ``noise``, now and then by much."""
    draw = random.Random(seed)

    def block(time: float) -> float:
        disturbed = 1.5 if draw.random() < 0.05 else 1.0
        return time * disturbed * math.exp(draw.gauss(0, noise))

    ratios = []
    for _ in range(count):
        stock = block(speedup) + block(speedup)
        kernel = block(1.0) + block(1.0)
        ratios.append(math.log(stock / kernel))
    return ratios


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_a_kernel_ten_percent_faster_is_found_under_five_percent_noise(seed: int) -> None:
    assert is_faster(bootstrap(quads(1.10, 0.05, 100, seed)))


@given(seeds)
@settings(max_examples=8, deadline=None)
def test_two_hundred_identical_kernels_report_no_gain(seed: int) -> None:
    verdicts = [is_faster(bootstrap(quads(1.0, 0.02, 40, seed + i), rounds=200)) for i in range(200)]
    # One in 200 by chance would be a 1e-4 event per kernel; the finalists' second measurement is for that.
    assert sum(verdicts) <= 1


@given(seeds, st.floats(0.001, 0.05), st.integers(QUADS_MIN, 60))
@settings(max_examples=60, deadline=None)
def test_the_estimate_lies_in_its_interval(seed: int, noise: float, count: int) -> None:
    interval = bootstrap(quads(1.2, noise, count, seed))
    assert interval.low <= interval.median <= interval.high
    assert interval.samples == count


@given(seeds, st.floats(0.6, 1.6))
@settings(max_examples=30, deadline=None)
def test_stock_and_kernel_are_never_both_faster(seed: int, speedup: float) -> None:
    ratios = quads(speedup, 0.02, 41, seed)
    forward, backward = bootstrap(ratios), bootstrap([-r for r in ratios])
    assert forward.median == pytest.approx(-backward.median)
    assert not (is_faster(forward) and is_faster(backward))


def test_more_samples_narrow_the_interval() -> None:
    few, many = bootstrap(quads(1.0, 0.03, 10, 3)), bootstrap(quads(1.0, 0.03, 200, 3))
    assert many.half_width < few.half_width


def test_too_few_samples_never_win() -> None:
    assert not is_faster(Interval(1.0, 0.99, 1.01, QUADS_MIN - 1))
    assert is_faster(Interval(1.0, 0.99, 1.01, QUADS_MIN))


def test_one_sample_has_no_interval() -> None:
    assert bootstrap([0.3]).half_width == math.inf


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        bootstrap([])


def test_a_gain_within_twice_the_interval_or_the_noise_is_a_tie() -> None:
    narrow = Interval(0.03, 0.025, 0.035, 50)
    assert is_faster(narrow)
    assert not is_faster(narrow, noise=0.02)
    assert not is_faster(Interval(0.03, 0.01, 0.05, 50))


def test_racing_drops_only_what_is_surely_worse() -> None:
    slow = Interval(math.log(1 / 1.6), math.log(1 / 1.7), math.log(1 / 1.5), 8)
    unsure = Interval(math.log(1 / 1.6), math.log(1 / 2.5), math.log(1 / 1.1), 8)
    assert surely_worse(slow, stock_us=100.0, best_us=None)
    assert not surely_worse(unsure, stock_us=100.0, best_us=None)
    level = Interval(0.0, -0.01, 0.01, 8)
    assert not surely_worse(level, stock_us=100.0, best_us=None)
    assert surely_worse(level, stock_us=100.0, best_us=50.0)


def test_launch_bound_kernels_rank_alike() -> None:
    assert rank_us(0.4) == rank_us(2.9) == LAUNCH_BOUND_US
    assert rank_us(7.0) == 7.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_median_splits_the_values(values: list[float]) -> None:
    middle = median(values)
    assert sum(v < middle for v in values) <= len(values) / 2
    assert sum(v > middle for v in values) <= len(values) / 2
