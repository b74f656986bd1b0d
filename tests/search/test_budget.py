"""Where the budget goes and when it ends."""

from __future__ import annotations

import pytest

from kernelforge_lab.search.budget import Budget, Ledger
from kernelforge_lab.search.regions import RegionSearch, bottleneck_of, next_region
from kernelforge_lab.search.tree import Tree

from .fakes import ROOFS, item, region


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def ledger(clock: FakeClock, **caps: float) -> Ledger:
    budget = Budget(int(caps.get("trials", 60)), caps.get("seconds", 100.0), caps.get("usd", 0.0))
    made = Ledger(budget, clock)
    made.start()
    return made


def test_each_cap_ends_the_run_in_its_own_words(clock: FakeClock) -> None:
    by_trials, by_time, by_money = ledger(clock, trials=2), ledger(clock), ledger(clock, usd=1.0)
    assert by_trials.exhausted() is None
    by_trials.trials = 2
    assert by_trials.exhausted() == "all 2 trials are used"
    by_money.usd = 1.0
    assert by_money.exhausted() == "the $1.00 are spent"
    clock.now = 96.0
    assert by_time.exhausted() == "the time of 1.66667 min is used"


def test_time_is_kept_back_for_finishing_but_never_more_than_a_quarter(clock: FakeClock) -> None:
    book = ledger(clock)
    assert book.search_s == 95.0
    book.finish_s = 20.0
    assert book.search_s == 80.0
    book.finish_s = 1000.0
    assert book.search_s == 75.0


def test_paused_time_does_not_count(clock: FakeClock) -> None:
    book = ledger(clock)
    clock.now = 10.0
    book.hold()
    clock.now = 1000.0
    book.start()
    clock.now = 1001.0
    assert book.elapsed_s == 11.0


def test_the_eta_is_the_nearer_cap(clock: FakeClock) -> None:
    book = ledger(clock, trials=10)
    assert book.eta_s() is None
    clock.now, book.trials = 4.0, 2
    assert book.eta_s() == 16.0
    clock.now = 90.0
    assert book.eta_s() == 10.0


def search(share: float, **more: float) -> RegionSearch:
    return RegionSearch(item(region(512), share, **more), "memory")


def test_the_next_kernel_goes_where_it_brings_most_per_cost(clock: FakeClock) -> None:
    big, small = search(0.5), search(0.1)
    book = ledger(clock)
    assert next_region([small, big], book, 5.0) is big
    big.tries, big.busy_s = 10, 2000.0
    assert next_region([small, big], book, 5.0) is small
    small.state = big.state = "done"
    assert next_region([small, big], book, 5.0) is None


def test_a_region_that_stopped_improving_yields_to_others() -> None:
    tired = search(0.5)
    tired.tree = Tree(1, 0.4)
    before = tired.expected_gain
    tired.tree.since_best = 10
    assert tired.expected_gain < before / 5


@pytest.mark.parametrize(
    "share,more,words",
    [
        (0.4, {"time_us": 22.0}, "stock PyTorch is at the limit of the machine"),
        (0.004, {}, "at most 0.31 % of the step is left to gain"),
    ],
)
def test_regions_not_worth_searching_say_why(share: float, more: dict[str, float], words: str) -> None:
    assert words in (search(share, **more).stop_reason() or "")


def test_gains_below_the_noise_are_not_worth_it() -> None:
    noisy = search(0.1, time_us=25.0)
    assert noisy.stop_reason() is None
    noisy.noise = 0.2
    assert "left to gain" in (noisy.stop_reason() or "")


def test_stagnation_is_a_reason() -> None:
    stuck = search(0.4)
    stuck.tree = Tree(1, 0.4)
    stuck.tree.since_best = 24
    assert stuck.stop_reason() == "no faster kernel in the last 24 tries"


def test_scaling_all_times_changes_no_expectation() -> None:
    one, thousand = search(0.4), search(0.4, time_us=100_000.0, floor_us=20_000.0)
    assert thousand.expected_gain == pytest.approx(one.expected_gain)
    assert thousand.headroom == pytest.approx(one.headroom)


def test_bottlenecks_follow_from_the_roofs() -> None:
    wide = region(512)
    memory_us = wide.bytes_floor / (ROOFS.bandwidth_gbps * 1e3)
    assert bottleneck_of(item(wide, floor_us=memory_us), ROOFS) == "memory"
    assert bottleneck_of(item(wide, floor_us=2 * memory_us), ROOFS) == "compute"
    assert bottleneck_of(item(region(2)), ROOFS) == "latency"
