"""A winner is found again in later runs and other models, proven again, and used at once; nothing is paid."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelforge_lab.cli import main
from kernelforge_lab.exc import ForgeError, ProblemError
from kernelforge_lab.judge.job import Job
from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.library import Library, export_proofs, import_proofs
from kernelforge_lab.library.library import RunMemory
from kernelforge_lab.log import EventLog
from kernelforge_lab.options import Options
from kernelforge_lab.run import Run
from kernelforge_lab.store import Store
from tests.scale.fakes import model, rooms
from tests.search.fakes import FakePool

LIMIT_S = 20


class House:
    """Runs on one machine with one store; each machine has its device."""

    def __init__(self, tmp_path: Path, device: str = "cpu-a") -> None:
        self.store = Store(f"sqlite:///{tmp_path / device}.sqlite")
        self.library = Library(self.store)
        self.device = device
        self.count = 0

    def run(self, pool: FakePool | None = None, trials: int = 20) -> tuple[Run, FakePool]:
        self.count += 1
        pool, name = pool or FakePool(), f"{self.device}-run-{self.count}"
        memory = RunMemory(self.library, "cpu", self.device, f"the {self.device}", name)
        made = rooms(pool, memory=memory)
        run = Run(Options(trials=trials, target="cpu"), log=EventLog(name, self.store), rooms=made)
        return run.start(model, (1,)).wait(LIMIT_S), pool


def added(run: Run) -> list[dict[str, Any]]:
    return [e for e in run.log.events if e["kind"] == "node_added" and e["parent"] is not None]


def test_a_second_run_proves_what_the_first_found_and_writes_nothing(tmp_path: Path) -> None:
    house = House(tmp_path)
    first, _ = house.run()
    second, pool = house.run()
    assert {e["proposer"] for e in added(second)} == {"library"} and len(added(second)) == 2
    assert all(job.finalist for job in pool.jobs) and len(pool.jobs) == 2
    meter = second.log.latest("meter") or {}
    assert (meter["trials"], meter["spent_usd"]) == (0, 0)
    assert {r.hash: n.source for r, n in first.history.winners()} == {
        r.hash: n.source for r, n in second.history.winners()
    }
    assert all("run cpu-a-run-1" in r.reason for r, _ in second.history.winners())
    assert second.apply() == "the forged model"


def test_a_region_known_to_the_library_alone_is_worth_its_proof(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.run()
    memory = RunMemory(house.library, "cpu", house.device, "", "later")

    class FakeRefuser:
        name = "templates"

        def refuses(self, *_: Any) -> str:
            return "this version writes nothing"

        def strategies(self, *_: Any) -> tuple[str, ...]:
            return ()

    made = replace(rooms(FakePool(), memory=memory), proposers=lambda options: [FakeRefuser()])
    run = Run(Options(target="cpu"), log=EventLog("later", house.store), rooms=made)
    assert len(run.start(model, (1,)).wait(LIMIT_S).history.winners()) == 2


def test_a_kernel_that_is_no_longer_faster_starts_the_search_and_one_that_is_wrong_is_forgotten(
    tmp_path: Path,
) -> None:
    class FakeChanged(FakePool):
        def verdict(self, job: Job) -> Verdict:
            if job.kernel.proposer == "library":
                return Verdict(Status.WRONG, "wrong at out0[3]", checks={"random": 1})
            return super().verdict(job)

    house = House(tmp_path)
    house.run()
    known = {proof.kernel.hash for proof in house.library.proofs()}
    run, _ = house.run(FakeChanged())
    assert {e["proposer"] for e in added(run)} == {"library", "templates"}
    assert len(run.history.winners()) == 2
    assert not known & {proof.kernel.hash for proof in house.library.proofs()}


def test_another_device_proves_again_and_searches_on(tmp_path: Path) -> None:
    here, there = House(tmp_path), House(tmp_path, "cpu-b")
    here.run()
    file = export_proofs(here.library.proofs(), tmp_path / "kernels.json")
    assert len(import_proofs(there.library, file)) == 2
    run, _ = there.run()
    assert {e["proposer"] for e in added(run)} == {"library", "templates"}
    foreign = [e for e in added(run) if e["proposer"] == "library"]
    assert all("the cpu-a" in e["strategy"] for e in foreign)
    # What it proved itself is now known of this device too.
    again, _ = there.run()
    assert {e["proposer"] for e in added(again)} == {"library"}
    assert {proof.device for proof in there.library.proofs()} == {"cpu-a", "cpu-b"}


def test_a_run_without_the_library_searches_anew(tmp_path: Path) -> None:
    run = Run(Options(trials=4, target="cpu"), log=EventLog("x"), rooms=rooms(FakePool()))
    run.start(model, (1,)).wait(LIMIT_S)
    assert {e["proposer"] for e in added(run)} == {"templates"}


@pytest.mark.parametrize(
    "damage, said",
    [
        ({"region": "0" * 12}, "text and hash differ"),
        ({"target": "cuda"}, "another target"),
        ({"params": {"BLOCK": "rm"}}, "whole numbers"),
        ({"verdict": {}}, "no timing"),
        ({"extra": 1}, "not those of a proof"),
        ({"source": 3}, "cannot be used"),
    ],
)
def test_a_damaged_file_adds_nothing(tmp_path: Path, damage: dict[str, Any], said: str) -> None:
    house, other = House(tmp_path), House(tmp_path, "cpu-b")
    house.run()
    file = export_proofs(house.library.proofs(), tmp_path / "kernels.json")
    data = json.loads(file.read_text())
    data["proofs"][1] |= damage
    file.write_text(json.dumps(data))
    with pytest.raises(ProblemError, match=said):
        import_proofs(other.library, file)
    assert other.library.proofs() == []


def test_files_that_are_none_and_a_library_that_is_empty_are_said(tmp_path: Path) -> None:
    house = House(tmp_path)
    with pytest.raises(ForgeError, match="no such kernel"):
        export_proofs(house.library.proofs(), tmp_path / "kernels.json")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ProblemError, match="not a kernelforge library"):
        import_proofs(house.library, tmp_path / "other.json")
    with pytest.raises(ProblemError, match="cannot be read"):
        import_proofs(house.library, tmp_path / "missing.json")


def test_the_command_line_takes_the_library_to_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = House(tmp_path), House(tmp_path, "cpu-b")
    here.run()
    file = str(tmp_path / "kernels.json")
    monkeypatch.setenv("KERNELFORGE_STORE", here.store.url)
    assert main(["library", "export", file]) == 0
    assert "2 kernels written" in capsys.readouterr().out
    monkeypatch.setenv("KERNELFORGE_STORE", there.store.url)
    assert main(["library", "import", file]) == 0
    assert "proven on this machine before it is used" in capsys.readouterr().out
    assert main(["library"]) == 0
    assert capsys.readouterr().out.count("the cpu-a") == 2
    assert main(["library", "list", "--region", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
