"""Options are checked where they enter; messages name the argument and what it allows."""

from __future__ import annotations

import pytest

from kernelforge_lab.exc import ProblemError
from kernelforge_lab.options import Options, matching

from .fakes import region


@pytest.mark.parametrize(
    "given,words",
    [
        ({"target": "gpu"}, "target must be one of auto, cpu, cuda, not 'gpu'"),
        ({"level": "ops"}, "level must be one of region, op"),
        ({"trials": -1}, "trials must be a whole number of at least 0, not -1"),
        ({"trials": 1.5}, "trials must be a whole number"),
        ({"trials": True}, "trials must be a whole number"),
        ({"minutes": 0}, "minutes must be a number above 0"),
        ({"minutes": float("nan")}, "minutes must be a number above 0"),
        ({"budget_usd": -0.1}, "budget_usd must be a number of at least 0"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"proposers": ""}, "proposers is empty"),
        ({"proposers": [1]}, "proposers must be a string or a list of strings"),
        ({"regions": 7}, "regions must be a string or a list of strings"),
    ],
)
def test_wrong_options_are_named(given: dict[str, object], words: str) -> None:
    with pytest.raises(ProblemError) as caught:
        Options(**given)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_lists_may_be_written_with_commas() -> None:
    options = Options(proposers="templates, human", regions=["abc", "rms"])  # type: ignore[arg-type]
    assert options.proposers == ("templates", "human") and options.regions == ("abc", "rms")


def test_regions_are_named_by_hash_prefix_or_op() -> None:
    relu, exp = region(512, "relu"), region(512, "exp")
    assert matching([relu.hash], [relu, exp]) == {relu.hash}
    assert matching([exp.hash[:6].upper()], [relu, exp]) == {exp.hash}
    assert matching(["exp", "relu"], [relu, exp]) == {relu.hash, exp.hash}
    assert matching([], [relu, exp]) == frozenset()


def test_a_filter_that_names_nothing_lists_what_there_is() -> None:
    relu = region(512, "relu")
    with pytest.raises(ProblemError, match=f"no region matches 'conv'.*{relu.hash}"):
        matching(["conv"], [relu])
