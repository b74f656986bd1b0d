"""Tune lines are swept by successive halving over at most sixteen combinations."""

from hypothesis import given
from hypothesis import strategies as st

from kernelforge_lab.search.tune import MOST_COMBINATIONS, Params, combinations, halving

tunes = st.dictionaries(
    st.sampled_from(["BLOCK", "UNROLL", "VEC", "ROWS"]),
    st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True),
    max_size=4,
)


@given(tunes, st.integers(0, 5))
def test_combinations_are_few_distinct_allowed_and_start_with_the_first_values(
    lines: dict[str, list[int]], seed: int
) -> None:
    found = combinations(lines, seed)
    assert len(found) == len(set(found)) <= MOST_COMBINATIONS
    assert all(value in lines[name] for params in found for name, value in params)
    assert found == combinations(lines, seed)
    if found:
        assert dict(found[0]) == {name: values[0] for name, values in lines.items()}


def test_nothing_to_choose_is_no_combination() -> None:
    assert combinations({}) == ()
    assert combinations({"BLOCK": [8]}) == ()


def race(
    candidates: tuple[Params, ...], merit: dict[Params, float | None]
) -> tuple[Params | None, list[int]]:
    contest, sizes = halving(candidates), []
    rung = next(contest)
    while True:
        sizes.append(len(rung.combinations))
        try:
            rung = contest.send([merit[params] for params in rung.combinations])
        except StopIteration as end:
            return end.value, sizes


@given(st.lists(st.one_of(st.none(), st.floats(0.1, 10)), min_size=1, max_size=16))
def test_the_best_that_works_wins(merits: list[float | None]) -> None:
    candidates: tuple[Params, ...] = tuple((("N", i),) for i in range(len(merits)))
    winner, sizes = race(candidates, dict(zip(candidates, merits, strict=True)))
    worked = [m for m in merits if m is not None]
    if not worked:
        assert winner is None
    else:
        assert winner is not None and winner == candidates[merits.index(max(worked))]
    assert sizes == sorted(sizes, reverse=True)


def test_sixteen_cost_twenty_two_measurements() -> None:
    candidates: tuple[Params, ...] = tuple((("N", i),) for i in range(16))
    _, sizes = race(candidates, dict.fromkeys(candidates, 1.0))
    assert sizes == [16, 5]
