"""%%forge as a person meets it: their cell runs once and unchanged, then a run starts on its model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from kernelforge_lab.notebook import magics
from kernelforge_lab.notebook.calls import ModelCall
from kernelforge_lab.options import Options
from kernelforge_lab.store import Store

from .fakes import FakeRun, fixture_events

SETUP = """
import torch
from torch import nn
class Double(nn.Module):
    def forward(self, x, scale=2.0):
        return x * scale
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Double()
    def forward(self, x):
        return self.inner(x) + 1
model, other = Outer(), Double()
x = torch.arange(3.0)
ran = []
"""


class Started:
    """What ``magics.start`` was asked for."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.options: list[Options] = []

    def __call__(self, call: ModelCall, options: Options) -> FakeRun:
        self.calls.append(call)
        self.options.append(options)
        return FakeRun().play()


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()
    shell.reset()
    shell.run_line_magic("load_ext", "kernelforge_lab")
    shell.ex(SETUP)
    yield shell
    shell.run_line_magic("unload_ext", "kernelforge_lab")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    started = Started()
    monkeypatch.setattr(magics, "start", started)
    return started


def test_the_cell_runs_once_in_the_persons_namespace(shell: Any, started: Started) -> None:
    run = shell.run_cell_magic("forge", "--no-wait", "ran.append(1)\ny = model(x)\ny")
    assert shell.user_ns["ran"] == [1]
    assert torch.equal(shell.user_ns["y"], torch.tensor([1.0, 3.0, 5.0]))
    assert torch.equal(shell.user_ns["_forge_value"], shell.user_ns["y"])
    assert isinstance(run, FakeRun) and shell.user_ns["_forge"] is run


def test_the_cells_own_value_is_displayed(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell_magic("forge", "--no-wait", "model(x)\n6 * 7")
    assert "42" in capsys.readouterr().out
    shell.run_cell_magic("forge", "--no-wait", "model(x)\n6 * 7;")
    assert "42" not in capsys.readouterr().out


def test_the_outermost_call_is_forged_with_its_real_arguments_and_modes(shell: Any, started: Started) -> None:
    shell.run_cell_magic("forge", "--no-wait", "with torch.no_grad():\n    other(x, scale=3.0)")
    (call,) = started.calls
    assert call.module is shell.user_ns["other"]
    assert call.args[0] is shell.user_ns["x"] and call.kwargs == {"scale": 3.0}
    assert not call.grad


def test_inner_modules_are_not_taken_for_the_model(shell: Any, started: Started) -> None:
    shell.run_cell_magic("forge", "--no-wait", "model(x)")
    assert [c.name for c in started.calls] == ["Outer"]


def test_of_several_models_the_slowest_is_forged_unless_one_is_named(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = "import time\nclass Slow(nn.Module):\n    def forward(self, x):\n        time.sleep(0.02)\n        return x\nslow = Slow()\nother(x); slow(x);"
    shell.run_cell_magic("forge", "--no-wait", cell)
    assert "forging Slow" in capsys.readouterr().out
    shell.run_cell_magic("forge", "other --no-wait", cell)
    assert [c.name for c in started.calls] == ["Slow", "Double"]


def test_a_kernelbench_cell_is_forged_without_a_call(shell: Any, started: Started) -> None:
    cell = (
        "class Model(nn.Module):\n    def forward(self, a):\n        return a * 2\n"
        "def get_inputs():\n    return [torch.ones(4)]\ndef get_init_inputs():\n    return []"
    )
    shell.run_cell_magic("forge", "--no-wait", cell)
    (call,) = started.calls
    assert call.name == "Model" and torch.equal(call.args[0], torch.ones(4))


def test_a_cell_without_a_model_says_so_in_one_line_and_keeps_its_value(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell_magic("forge", "", "z = 5\nz + 1") is None
    shown = capsys.readouterr()
    assert "6" in shown.out and shown.err.count("\n") == 1
    assert "called no torch.nn.Module" in shown.err
    assert shell.user_ns["_forge_value"] == 6 and started.calls == []


def test_a_named_model_that_was_not_called_is_told_with_those_that_were(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell_magic("forge", "model", "other(x);") is None
    assert "never called model" in (err := capsys.readouterr().err) and "Double" in err


@pytest.mark.parametrize("error", ["ValueError('mine')", "KeyboardInterrupt()"])
def test_the_persons_exceptions_pass_untouched(shell: Any, started: Started, error: str) -> None:
    call = torch.nn.Module.__call__
    with pytest.raises((ValueError, KeyboardInterrupt)):
        shell.run_cell_magic("forge", "", f"model(x)\nraise {error}")
    assert started.calls == [] and torch.nn.Module.__call__ is call


@pytest.mark.parametrize(
    "line, words",
    [
        ("--trials many", "invalid int value"),
        ("--target gpu", "cpu"),
        ("--minutes 0", "minutes must be"),
        ("--into 3x", "variable name"),
        ("a b", "one model"),
        ("__import__('os')", "name of one model"),
    ],
)
def test_bad_options_are_one_line_before_the_cell_runs(
    shell: Any, started: Started, line: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        shell.run_cell_magic("forge", line, "ran.append(1)\nmodel(x)")
    assert "\n" not in str(caught.value).strip() or "usage" in str(caught.value)
    assert shell.user_ns["ran"] == []


def test_options_reach_the_run(shell: Any, started: Started) -> None:
    line = "--trials 7 --minutes 0.5 --seed 3 --proposer templates --regions gelu,add --level op --into mine --no-wait"
    run = shell.run_cell_magic("forge", line, "model(x)")
    (options,) = started.options
    assert (options.trials, options.minutes, options.seed, options.level) == (7, 0.5, 3, "op")
    assert options.proposers == ("templates",) and options.regions == ("gelu", "add")
    assert shell.user_ns["mine"] is run


def test_where_nobody_watches_the_cell_waits_and_prints_progress(
    shell: Any, started: Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(magics, "is_interactive", lambda: False)
    run = shell.run_cell_magic("forge", "", "model(x);")
    out = capsys.readouterr().out
    assert run.history.state == "finished"
    assert "ceiling 1.52×" in out and "left" in out and "1.34× (1.31–1.37), outputs equal" in out


def test_line_magic_controls_the_newest_run(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    run = shell.run_cell_magic("forge", "--wait", "model(x);")
    shell.run_line_magic("forge", "pause")
    shell.run_line_magic("forge", "resume _forge")
    shell.run_line_magic("forge", "stop")
    assert run.calls == ["pause", "resume", "stop"]
    capsys.readouterr()
    shell.run_line_magic("forge", "status")
    assert "gemma4 (small)" in capsys.readouterr().out
    shell.run_line_magic("forge", f"report _forge {tmp_path}/r.html")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert shell.run_line_magic("forge", "show") is run


@pytest.mark.parametrize(
    "line, words", [("dance", "it has status"), ("stop", "no run yet"), ("stop nix", "no run")]
)
def test_wrong_sub_commands_are_one_line(shell: Any, line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        shell.run_line_magic("forge", line)


def test_options_complete(shell: Any) -> None:
    assert "--budget-usd" in shell.complete(None, "%%forge --bud", 13)[1]
    assert "status" in shell.complete(None, "%forge st", 9)[1]


def test_unloading_stops_runs_and_removes_the_magic(shell: Any, started: Started) -> None:
    run = shell.run_cell_magic("forge", "--no-wait", "model(x);")
    shell.run_line_magic("unload_ext", "kernelforge_lab")
    assert "stop" in run.calls
    assert "forge" not in shell.magics_manager.magics["cell"]
    shell.run_line_magic("load_ext", "kernelforge_lab")


KERNEL = "// forge: target cpu\n// forge: launch f args=(in0, out0)\n"


def test_a_kernel_cell_is_judged_and_joins_the_tree(
    shell: Any, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shell.run_cell_magic("forge", "--wait", "model(x)")
    capsys.readouterr()
    shell.run_cell_magic("kernel", "q_norm --idea 'rows in registers' --into mine", KERNEL)
    assert capsys.readouterr().out.startswith(
        "node 100000: faster 1.60× (1.55–1.65), 690.0 µs against 1104.0 µs"
    )
    record = shell.user_ns["mine"]
    assert (record.proposer, record.idea, record.source) == ("human", "rows in registers", KERNEL)
    assert run.node(100000).region == record.region
    shell.run_cell_magic("kernel", "--parent 100000", KERNEL + "FAIL")
    assert "node 100001: wrong: out0[3, 17]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line, cell, says",
    [
        ("", KERNEL, "region must be named"),
        ("nothing_like_it", KERNEL, "no region matches"),
        ("q_norm", "  \n", "should hold a kernel's source"),
        ("q_norm --parent 4711", KERNEL, "there is no node 4711"),
    ],
)
def test_a_kernel_cell_that_fits_nowhere_is_one_line(
    shell: Any, started: Started, line: str, cell: str, says: str
) -> None:
    shell.run_cell_magic("forge", "--wait", "model(x)")
    with pytest.raises(UsageError, match=says):
        shell.run_cell_magic("kernel", line, cell)


def test_config_sets_what_the_options_do_not_say(shell: Any, started: Started) -> None:
    shell.run_line_magic("config", "ForgeMagics.minutes = 2")
    shell.run_line_magic("config", "ForgeMagics.trials = 7")
    shell.run_cell_magic("forge", "--no-wait --trials 9", "model(x)")
    assert (started.options[-1].minutes, started.options[-1].trials) == (2.0, 9)


def test_a_run_shows_its_panel_without_the_extension(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic("unload_ext", "kernelforge_lab")
    shell.display_formatter.format(FakeRun().play().wait())
    assert "kernelforge run r-20261201-gemma4" in capsys.readouterr().out
    shell.run_line_magic("load_ext", "kernelforge_lab")


@pytest.mark.parametrize("suffix", ["html", "ipynb", "md"])
def test_report_writes_every_kind_and_finds_runs_of_yesterday(
    shell: Any, started: Started, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    store = Store()
    for event in fixture_events():
        store.append("r-20261201-gemma4", event)
    path = tmp_path / f"x.{suffix}"
    shell.run_line_magic("forge", f"report r-2026 {path}")
    assert "gemma4" in path.read_text("utf-8")
    with pytest.raises(UsageError, match="there is no report of kind"):
        shell.run_line_magic("forge", f"report r-2026 {tmp_path / 'x.pdf'}")


def test_a_stored_run_whose_kernel_died_is_shown_as_stopped(
    shell: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    for event in fixture_events()[:60]:
        Store().append("r-died", {**event, "at_s": 1.0})
    run = shell.run_line_magic("forge", "show r-died")
    assert run.state == "stopped" and "kernel has gone" in run.history.message
    assert not run.is_steerable and len(run.history.nodes) > 10
