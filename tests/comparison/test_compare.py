"""Runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kernelforge_lab
from kernelforge_lab.exc import ProblemError
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store
from tests.scale.fakes import model, new_run
from tests.search.fakes import FakePool


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    store = Store()
    pools = (FakePool(), FakePool(flattering=True))
    return [new_run(f"r{n}", store, pool).start(model, (1,)).wait(20) for n, pool in enumerate(pools)]


def test_the_table_has_a_row_per_run_and_the_regions_one_per_region(runs: list[Run]) -> None:
    both = kernelforge_lab.compare(runs[0], "r1")
    assert list(both.table["run"]) == ["r0", "r1"] and list(both.table["faster"]) == [2, 0]
    assert list(both.table["speedup"]) == [1.5, 1.5] and set(both.table["device"]) == {"a fake CPU"}
    assert len(both.regions) == 4
    assert list(both.regions["region"]) == sorted(both.regions["region"])
    assert "r1" in str(both)


def test_the_chart_holds_the_measured_numbers(runs: list[Run]) -> None:
    spec = kernelforge_lab.compare(*runs).chart.to_dict()
    text = json.dumps(spec, ensure_ascii=False)
    assert '"speedup": 1.5' in text and "Toy · r0" in text and "NaN" not in text


def test_what_cannot_be_compared_is_said(runs: list[Run]) -> None:
    with pytest.raises(ProblemError, match="no runs to compare"):
        kernelforge_lab.compare()
    with pytest.raises(ProblemError, match="a int is no run"):
        kernelforge_lab.compare(runs[0], 3)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="captured nothing"):
        kernelforge_lab.compare(Run())
    with pytest.raises(ProblemError, match="there is no run 'nope'"):
        kernelforge_lab.compare("nope")
