"""Reward: unit-free, ordered by the gates, quarantined when impossible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.search.reward import of_speedup, reachable_us, reward


def faster(speedup: float) -> Verdict:
    status = Status.FASTER if speedup > 1 else Status.SLOWER
    timing = Timing(100 / speedup, "eager", 100.0, speedup, speedup * 0.99, speedup * 1.01, 40)
    return Verdict(status, timing=timing)


def test_stock_speed_lies_between_a_slower_and_a_faster_kernel() -> None:
    assert reward(faster(0.8), 3.0) < of_speedup(1.0, 3.0) < reward(faster(1.2), 3.0)


def test_reaching_the_limit_is_full_reward_and_passing_it_is_no_more() -> None:
    assert reward(faster(3.0), 3.0) == pytest.approx(1.0)
    assert reward(faster(5.0), 3.0) == pytest.approx(1.0)


@given(st.floats(0.01, 100), st.floats(0.1, 50))
def test_any_correct_kernel_beats_any_wrong_one(speedup: float, headroom: float) -> None:
    right, wrong = reward(faster(speedup), headroom), reward(Verdict(Status.WRONG), headroom)
    assert right is not None and wrong is not None
    assert 0 < wrong < 0.2 <= right <= 1.0 + 1e-12


@pytest.mark.parametrize("status", [Status.COMPILE_ERROR, Status.CRASHED, Status.TIMEOUT, Status.UNVERIFIED])
def test_what_gave_no_answer_is_worth_nothing(status: Status) -> None:
    assert reward(Verdict(status), 2.0) == 0.0


def test_the_impossible_is_never_rewarded() -> None:
    timing = Timing(0.1, "eager", 100.0, 1000.0, 990.0, 1010.0, 40)
    assert reward(Verdict(Status.IMPOSSIBLE, timing=timing), 2.0) is None


def test_a_region_at_its_limit_does_not_turn_noise_into_full_reward() -> None:
    assert of_speedup(1.005, headroom=1.0) < 0.6


def test_compute_bound_regions_count_as_done_further_from_their_limit() -> None:
    assert reachable_us(9.0, "memory") == pytest.approx(10.0)
    assert reachable_us(7.5, "compute") == pytest.approx(10.0)
