"""The bounds are wide enough for every honest way of computing and too narrow for every known flaw.

No kernel runs here: each way is written in torch and held against the judge's own cases.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from kernelforge_lab.judge.inputs import view_storage
from kernelforge_lab.judge.oracle import Oracle, check_error

from .flaws import COARSE, FLAWS, HONEST, ONE_SUM, ONE_SUM_LONGEST, Way, compute
from .numerics import FUNCTIONS, row_region

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
WIDTHS = (33, 4097, 131072)


@lru_cache(maxsize=4)
def oracle(function: str, width: int, dtype: str) -> Oracle:
    return Oracle(row_region(function, width, dtype), (), 0, 1 << 30)


def worst(function: str, width: int, dtype: str, way: Way) -> tuple[float, str]:
    """(error over bound, family) where ``way`` does worst."""
    judge = oracle(function, width, dtype)
    found = (0.0, "")
    for name in judge.full_names():
        case = judge.case(name)
        if case.skipped:
            continue
        inputs = [view_storage(d, s) for d, s in zip(case.storages, judge.region.inputs, strict=True)]
        out = compute(function, inputs, way).reshape(judge.region.outputs[0].shape)
        found = max(found, (check_error(case, 0, out)[0], name))
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_honest_ways_pass_and_flaws_do_not(function: str, width: int) -> None:
    for name, (way, functions) in HONEST.items():
        if function in functions and (width <= ONE_SUM_LONGEST or name not in ONE_SUM):
            assert worst(function, width, "float32", way)[0] <= 1, name
    for name, (way, functions) in FLAWS.items():
        if function in functions:
            assert worst(function, width, "float32", way)[0] > 1.2, name


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_sixteen_bits_do_not_hide_what_is_left_out(function: str, dtype: str) -> None:
    assert worst(function, 4097, dtype, Way())[0] <= 1
    for name in COARSE:
        way, functions = FLAWS[name]
        if function in functions:
            assert worst(function, 4097, dtype, way)[0] > 1.2, name
