"""A stored run's winner is judged again: where it was proven, and where its certificate does not hold."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Self

import pytest

from kernelforge_lab.capture.workload import WorkloadRegion
from kernelforge_lab.cli import main, verify
from kernelforge_lab.events import NodeAdded, NodeJudged, RegionState, RunStarted, RunState
from kernelforge_lab.judge.verdict import Status, Timing, Verdict
from kernelforge_lab.log import EventLog
from kernelforge_lab.store import Store
from tests.deploy.helpers import REGION, certified, kernel

TIMING = Timing(10.0, "eager", 30.0, 3.0, 2.9, 3.1, 40)


def stored(folder: Path, monkeypatch: pytest.MonkeyPatch, paper: dict[str, Any] | None) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{folder / 'runs.sqlite'}")
    store = Store()
    log = EventLog("260101-120000-abcd", store)
    made = kernel()
    item = WorkloadRegion(REGION, 3, 50.0, 0.5, 10.0, 1.4, True, "", ())
    log.emit(
        RunStarted(
            log.run,
            "Net",
            "cpu",
            "here",
            "region",
            0,
            ["human"],
            {},
            1.0,
            1.0,
            1.4,
            {},
            [item.as_json()],
            [],
            [],
            "",
        )
    )
    log.emit(NodeAdded(1, REGION.hash, None, "human", "", "", made.source, {}))
    verdict = Verdict(Status.FASTER, timing=TIMING, certificate=paper)
    log.emit(NodeJudged(1, REGION.hash, verdict.as_json(), 0.6))
    log.emit(RegionState(REGION.hash, "done", "budget", 1, 3.0, 2.9, 3.1))
    log.emit(RunState("finished", ""))
    store.close()


class FakePool:
    """Answers every job with one verdict, and remembers the jobs."""

    jobs: list[Any] = []  # noqa: RUF012
    verdict = Verdict(Status.FASTER, timing=dataclasses.replace(TIMING, speedup=2.5))

    def __init__(self, target: str, *, threads: int | None = None) -> None:
        self.made = (target, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, job: Any) -> Any:
        from concurrent.futures import Future

        FakePool.jobs.append(job)
        future: Future[Verdict] = Future()
        future.set_result(FakePool.verdict)
        return future


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[FakePool]:
    monkeypatch.setattr(verify, "JudgePool", FakePool)
    monkeypatch.setattr(FakePool, "jobs", [])
    return FakePool


def paper() -> dict[str, Any]:
    verdict = certified(REGION, kernel()).verdict
    assert verdict is not None and verdict.certificate is not None
    return verdict.certificate


def test_a_winner_is_judged_again_as_a_finalist_and_its_new_verdict_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: type[FakePool], capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, monkeypatch, paper())
    assert main(["verify", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kept"]
    (row,) = said["regions"]
    assert (row["certificate"], row["before"]) == ("held", 3.0)
    assert row["verdict"]["timing"]["speedup"] == 2.5
    (job,) = pool.jobs
    assert job.finalist and job.region == REGION and job.kernel.source == kernel().source
    main(["verify"])
    assert "was 2.50×" in capsys.readouterr().out


def test_a_certificate_of_elsewhere_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: type[FakePool], capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, monkeypatch, {**paper(), "fingerprint": "other", "device": "Another CPU"})
    assert main(["verify", "2601"]) == 0
    assert "did not hold here: it was issued on Another CPU" in capsys.readouterr().out
    assert not main(["verify"])


def test_a_winner_that_is_none_here_ends_with_code_1_and_is_no_winner_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: type[FakePool], capsys: pytest.CaptureFixture[str]
) -> None:
    stored(tmp_path, monkeypatch, None)
    monkeypatch.setattr(pool, "verdict", Verdict(Status.WRONG, "out0[3, 5] is 1, expected 2"))
    assert main(["verify"]) == 1
    said = capsys.readouterr().out
    assert "wrong" in said and "it has none" in said and "out0[3, 5]" in said
    assert main(["verify"]) == 1
    assert "no winner to verify" in capsys.readouterr().out
