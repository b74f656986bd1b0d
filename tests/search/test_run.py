"""A Run from the outside: what a person in a notebook calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import kernelforge_lab
from kernelforge_lab.entry import forge, load
from kernelforge_lab.events import GuardCounts, StepMeasured
from kernelforge_lab.exc import CaptureError, ForgeError, ProblemError
from kernelforge_lab.options import Options
from kernelforge_lab.rooms import Rooms
from kernelforge_lab.run import Run

from .fakes import FakePool, FakeProposer, item, region, workload


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")


class FakeForged:
    def __init__(self, function: Any, speedup: float) -> None:
        self.installed = speedup > 1
        self.model = "the forged model" if self.installed else function
        self.notes: tuple[str, ...] = ()
        message = "faster" if self.installed else "not faster: the model is unchanged"
        self.measured = StepMeasured(
            "eager", 12.0, 12.0 / speedup, speedup, speedup - 0.05, speedup + 0.05, 0.4, True, self.installed,
            message=message,
        )  # fmt: skip

    def counts(self) -> GuardCounts:
        return GuardCounts(3, {"shape": 1})


class House:
    """Fake rooms, and a note of what they were asked."""

    def __init__(self, *, speedup: float = 1.5, pool: FakePool | None = None, regions: Any = ()) -> None:
        self.pool = pool or FakePool()
        self.applied: list[dict[str, Any]] = []
        self.speedup = speedup
        self.workload = workload(*regions)

    def apply(self, function: Any, args: Any, kwargs: Any, winners: Any, **options: Any) -> Any:
        self.applied.append({"winners": winners, **options})
        return FakeForged(function, self.speedup)

    def rooms(self) -> Rooms:
        return Rooms(
            capture=lambda *args, **kwargs: self.workload,
            judge=lambda options: self.pool,
            proposers=lambda options: [FakeProposer()],
            apply=self.apply,
            device=lambda options: ("a fake CPU", 2),
        )

    def run(self, **options: Any) -> Run:
        return Run(Options(**options), rooms=self.rooms()).start(model, (1,))


def model(x: int) -> int:
    return x


def test_a_run_ends_with_a_measured_step_and_a_forged_model() -> None:
    house = House()
    run = house.run(trials=20).wait(20)
    assert run.state == "finished" and house.pool.closed
    kinds = [event["kind"] for event in run.log.events]
    assert kinds[:2] == ["run_state", "run_started"]
    assert kinds.count("step_measured") == 1
    assert run.apply() == "the forged model"
    assert len(house.applied) == 1, "what was measured is not measured again"
    assert set(house.applied[0]["winners"]) == {item.region.hash for item in house.workload.regions}


def test_strict_is_measured_as_strict() -> None:
    house = House()
    run = house.run(trials=20).wait(20)
    run.apply(strict=True)
    assert [call["strict"] for call in house.applied] == [False, True]


def test_a_step_that_is_not_faster_leaves_the_model_unchanged_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = House(speedup=0.9).run(trials=20).wait(20)
    assert run.apply() is model
    assert "not faster: the model is unchanged" in capsys.readouterr().out


def test_inductors_region_is_installed_where_no_kernel_beats_it() -> None:
    house = House(pool=FakePool(flattering=True))
    house.run(trials=6).wait(20)
    assert {winner.kernel for winner in house.applied[0]["winners"].values()} == {"compiled"}


def test_the_summary_has_the_shape_of_the_command_line() -> None:
    house = House()
    summary = house.run(trials=20).wait(20).summary()
    assert json.loads(json.dumps(summary)) == summary
    assert list(summary) == ["run", "target", "ceiling", "busy", "step", "regions", "spent_usd"]
    assert set(summary["step"]) == {
        "stock", "stock_ms", "forged_ms", "speedup", "low", "high", "max_error", "equal",
    }  # fmt: skip
    for entry in summary["regions"]:
        assert set(entry) == {
            "hash", "ops", "count", "share", "ceiling", "status",
            "stock", "stock_us", "kernel_us", "speedup", "low", "high",
        }  # fmt: skip
        assert entry["status"] == "faster" and entry["low"] <= entry["speedup"] <= entry["high"]


def test_a_region_that_keeps_stock_has_no_speed_up_in_the_summary() -> None:
    run = House(pool=FakePool(flattering=True)).run(trials=6).wait(20)
    for entry in run.summary()["regions"]:
        assert entry["status"] == "stock" and entry["stock_us"] == 80.0
        assert entry["speedup"] is None and entry["kernel_us"] is None


def test_with_nothing_to_search_the_step_is_the_models_own() -> None:
    house = House(regions=[item(region(512), 0.3, eligible=False, reason="random op")])
    run = house.run().wait(20)
    step = run.summary()["step"]
    assert step["speedup"] == 1.0 and step["stock_ms"] == step["forged_ms"] == 12.0
    assert house.applied == [] and run.apply() is model


def test_frame_and_table_show_nodes_and_regions() -> None:
    run = House().run(trials=20).wait(20)
    frame, table = run.frame(), run.table()
    assert {
        "region",
        "node",
        "parent",
        "proposer",
        "strategy",
        "status",
        "kernel_us",
        "stock",
        "stock_us",
    } <= set(frame)
    assert {"speedup", "low", "high", "evidence", "params"} <= set(frame)
    assert len(frame) == len(run.history.nodes)
    assert list(table["share"]) == [0.4, 0.2] and (table["state"] == "faster").all()
    assert run.best(table["region"][0]).id == table["best"][0]  # type: ignore[union-attr]


def test_frame_and_table_exist_before_anything_happened() -> None:
    run = Run()
    assert len(run.frame()) == 0 and len(run.table()) == 0


def test_a_node_prints_as_verdict_and_source() -> None:
    run = House().run(trials=8).wait(20)
    assert "// forge: target cpu" in str(run.node(2))
    with pytest.raises(ProblemError, match="no node 9999"):
        run.node(9999)


def test_a_run_is_loaded_from_the_store_as_it_was() -> None:
    run = House().run(trials=12).wait(20)
    for name in (run.id, run.id[:-1], None):
        again = load(name)
        assert again.log.events == run.log.events
    assert again.summary() == run.summary() and again.state == "finished"
    with pytest.raises(ForgeError, match="its model is not here"):
        again.apply()
    with pytest.raises(ForgeError, match="no search that could go on"):
        again.submit("x")
    with pytest.raises(ProblemError, match=f"there is no run 'nope'.*{run.id}"):
        load("nope")


def test_the_export_holds_everything_about_the_winners(tmp_path: Path) -> None:
    run = House().run(trials=20).wait(20)
    folder = run.export(tmp_path / "kernels")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["run"] == run.id and len(manifest["regions"]) == 2
    for entry in manifest["regions"]:
        node = run.best(entry["hash"])
        assert node is not None
        assert (folder / entry["source"]).read_text() == node.source
        assert (folder / entry["region"]).read_text().startswith("region(")
        assert entry["params"] == node.params and entry["verdict"]["status"] == "faster"
    assert run.id in (folder / "README.md").read_text()
    assert run.export(tmp_path / "kernels") == folder, "exporting twice is fine"


def test_nothing_to_export_is_said(tmp_path: Path) -> None:
    run = House(pool=FakePool(flattering=True)).run(trials=4).wait(20)
    with pytest.raises(ForgeError, match="nothing to export"):
        run.export(tmp_path)


def test_a_stopped_run_still_proves_and_applies_its_best() -> None:
    house = House()
    run = Run(Options(trials=200), rooms=house.rooms())
    run.log.subscribe(lambda event: event["kind"] == "region_state" and event["speedup"] and run.stop())
    run.start(model, (1,)).wait(20)
    assert run.state == "stopped" and not house.applied
    assert run.apply() == "the forged model"
    assert any(not isinstance(winner.kernel, str) for winner in house.applied[0]["winners"].values())


def test_a_stopped_run_can_go_on() -> None:
    house = House()
    run = Run(Options(trials=30), rooms=house.rooms())
    run.log.subscribe(lambda event: event["kind"] == "node_judged" and event["node"] == 2 and run.stop())
    run.start(model, (1,)).wait(20)
    assert run.state == "stopped"
    assert run.resume().wait(20).state == "finished"
    assert run.apply() == "the forged model"


def test_apply_waits_for_nobody() -> None:
    house = House(pool=FakePool(hold=True))
    run = house.run()
    assert house.pool.submitted.wait(10)
    with pytest.raises(ForgeError, match=r"run\.wait\(\) or run\.stop\(\)"):
        run.apply()
    run.stop().wait(10)
    assert run.state == "stopped"


def test_a_kernel_of_ones_own_joins_the_tree() -> None:
    house = House()
    run = house.run(trials=6).wait(20)
    with pytest.raises(ProblemError, match="region must be named"):
        run.submit("// forge: target cpu\nmine")
    node = run.submit("// forge: target cpu\nmine", "relu", idea="my own")
    run.wait(20)
    mine = run.node(node)
    assert (mine.proposer, mine.idea) == ("human", "my own") and mine.verdict is not None
    child = run.submit("// forge: target cpu\nbetter", parent=node)
    run.wait(20)
    assert run.node(child).parent == node and run.node(child).region == mine.region


def test_waiting_gives_up_after_its_time_and_awaiting_works() -> None:
    house = House(pool=FakePool(hold=True))
    run = house.run()
    assert run.wait(0.01).is_running
    house.pool.release()

    async def cell() -> Run:
        return await run

    assert asyncio.run(cell()).state == "finished"


def test_interrupting_a_wait_leaves_the_run_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    house = House(pool=FakePool(hold=True))
    run = house.run()

    def interrupt(timeout: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(run._running_agent.done, "wait", interrupt)
    assert run.wait() is run and run.is_running
    assert "run.stop() to stop" in capsys.readouterr().out
    monkeypatch.undo()
    run.stop()


def test_a_capture_that_fails_is_raised_and_kept_in_the_run() -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise CaptureError("the model raised ValueError: no", "Make it work first.")

    run = Run(rooms=Rooms(capture=broken, proposers=lambda options: [FakeProposer()]))
    with pytest.raises(CaptureError):
        run.start(model, (1,))
    assert run.state == "failed" and "ValueError" in run.history.message
    assert run.wait().apply() is model


def test_a_region_filter_that_names_nothing_is_an_error() -> None:
    with pytest.raises(ProblemError, match="no region matches 'conv'"):
        House().run(regions="conv")


def test_misspelt_names_are_explained() -> None:
    with pytest.raises(
        ProblemError, match=r"'trails' is neither an option nor an argument.*Did you mean 'trials'"
    ):
        forge(model, 1, trails=3)
    with pytest.raises(ProblemError, match="a int cannot be called"):
        forge(3)
    with pytest.raises(ProblemError, match="'target' is an option and also an argument"):
        forge(lambda x, target: x, 1, target="cpu")
    with pytest.raises(ProblemError, match="level must be one of"):
        forge(model, 1, level="model")


def test_the_public_names_are_few() -> None:
    assert kernelforge_lab.__all__ == [
        "Run", "__version__", "compare", "forge", "load", "load_ipython_extension",
    ]  # fmt: skip
    assert kernelforge_lab.Run is Run and kernelforge_lab.forge is forge and kernelforge_lab.load is load
    with pytest.raises(AttributeError, match="no attribute 'frge'"):
        kernelforge_lab.frge  # noqa: B018
