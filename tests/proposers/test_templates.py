"""Every kernel the templates write computes what the region says, whatever the strategy."""

from __future__ import annotations

import pytest
import torch

from kernelforge_lab.proposers.templates.proposer import TemplatesProposer

from .cases import Case, cases
from .running import assert_matches_oracle, run
from .tracing import region_of

PROPOSER = TemplatesProposer()


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_every_strategy_matches_the_float64_oracle(case: Case) -> None:
    region = region_of(case.function, *case.inputs)
    strategies = PROPOSER.strategies(region, "cpu", None)
    assert strategies, PROPOSER.refuses(region, "cpu")
    for strategy in strategies:
        outputs = run(region, strategy, case.inputs)
        assert_matches_oracle(region, outputs, case.inputs)


def test_rows_are_kept_between_passes_when_the_strategy_says_so() -> None:
    region = region_of(lambda x: torch.softmax(x, -1), torch.randn(8, 64))
    assert "rows_keep" in PROPOSER.strategies(region, "cpu", None)
