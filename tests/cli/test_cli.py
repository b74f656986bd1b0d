from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelforge_lab.cli import main, parser
from kernelforge_lab.store import Store
from kernelforge_lab.targets import toolchain
from tests.notebook.fakes import fixture_events

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, bias):
        return torch.relu(x + bias)

def get_inputs():
    return [torch.randn(64, 128), torch.randn(128)]

def get_init_inputs():
    return []
"""

KERNEL = """\
// forge: target cpu
// forge: tune WIDTH 1 2
// forge: launch relu_add args=(in0, in1, out0)
extern "C" void relu_add(const float* x, const float* bias, float* y) {
#pragma omp parallel for num_threads(THREADS_MAX)
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++) y[i * COLS + j] = BODY;
}
"""

RIGHT = KERNEL.replace("BODY", "std::max(x[i * COLS + j] + bias[j], 0.0f)")


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM)
    return str(path)


def kernel_file(folder: Path, source: str) -> str:
    path = folder / "kernel.cpp"
    path.write_text(source)
    return str(path)


def test_regions_lists_names_specs_and_a_skeleton(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regions", problem, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (region,) = said["regions"]
    assert region["inputs"] == {"in0": "f32[64,128]", "in1": "f32[128]"}
    assert region["outputs"] == {"out0": "f32[64,128]"}
    assert region["ops"] == ["aten.add.Tensor", "aten.relu.default"]
    assert region["eligible"]
    assert said["ceiling"] >= 1

    assert main(["regions", problem, "--skeleton", region["hash"][:6]]) == 0
    assert capsys.readouterr().out == region["skeleton"]
    assert main(["regions", problem]) == 0
    assert f"{region['hash']}  add·relu  ×1" in capsys.readouterr().out


def test_a_right_kernel_is_judged_and_timed(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", problem, kernel_file(tmp_path, RIGHT), "--param", "WIDTH=2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] in ("faster", "slower")
    assert said["checks"] > 0
    assert said["kernel_us"] > 0
    assert said["stock"] in ("eager", "compiled")
    assert said["low"] <= said["speedup"] <= said["high"]


@pytest.mark.parametrize(
    "source, status, evidence",
    [
        (KERNEL.replace("BODY", "x[i * COLS + j]"), "wrong", ""),
        (KERNEL.replace("BODY", "nonsense"), "compile_error", "kernel.cpp:7"),
        (KERNEL.replace("args=", "arg="), "parse_error", "line 3: unknown launch key 'arg'"),
    ],
)
def test_a_bad_kernel_is_judged_too(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, status: str, evidence: str
) -> None:
    assert main(["judge", problem, kernel_file(tmp_path, source), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == status
    assert evidence in said["evidence"]
    assert said["speedup"] is None


def test_forge_prints_one_json_object_and_writes_the_report(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "out.html"
    code = main(["forge", problem, "--json", "--trials", "2", "--minutes", "1", "--report", str(report)])
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert set(said) >= {"run", "target", "ceiling", "busy", "step", "regions", "spent_usd"}
    assert [region["ops"] for region in said["regions"]] == [["aten.add.Tensor", "aten.relu.default"]]
    assert said["spent_usd"] == 0
    assert report.read_text().startswith("<!")


def test_bad_input_is_an_error_with_a_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regions", str(tmp_path / "none.py")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("kernelforge: ")
    assert "does not exist. Give a Python file." in said.err

    assert main(["regions", str(tmp_path / "none.py"), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)
    assert error["error"] == "ProblemError"
    assert error["hint"].startswith("Give a Python file.")


def test_an_unknown_region_lists_those_there_are(
    problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", problem, kernel_file(tmp_path, RIGHT), "--region", "ffff"]) == 2
    assert "no region with a hash that starts with 'ffff'. There are: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["judge", "p.py", "none.cpp"], "none.cpp cannot be read: No such file or directory."),
        (["judge", "p.py", "{kernel}", "--param", "WIDTH"], "--param 'WIDTH' is not NAME=VALUE."),
        (["judge", "p.py", "{binary}"], "is not UTF-8 text."),
    ],
)
def test_a_bad_kernel_argument_is_found_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    kernel = kernel_file(tmp_path, RIGHT)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main([a.format(kernel=kernel, binary=tmp_path / "binary") for a in arguments]) == 2
    assert message in capsys.readouterr().err


def test_doctor_is_content_where_the_cpu_target_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "✓ cpu target" in capsys.readouterr().out


def test_doctor_says_what_to_do_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("KERNELFORGE_CXX", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", "--json"]) == 1
    (found,) = [f for f in json.loads(capsys.readouterr().out) if f["state"] == "missing"]
    assert found["name"] == "cpu target"
    assert found["todo"] == toolchain.install_hint()


def test_doctor_never_shows_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    main(["doctor"])
    said = capsys.readouterr().out
    assert "OPENAI_API_KEY is set" in said
    assert "sk-secret" not in said


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "forge" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip()


def test_every_option_is_explained() -> None:
    commands = next(a for a in parser()._actions if a.dest == "command")
    assert set(commands.choices) == {
        "forge", "judge", "regions", "runs", "report", "verify", "export", "library", "doctor",
    }  # fmt: skip
    for command in commands.choices.values():
        assert all(action.help for action in command._actions)


def test_stored_runs_are_listed_and_reported_also_of_yesterday(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELFORGE_STORE", f"sqlite:///{tmp_path / 'runs.sqlite'}")
    assert main(["runs"]) == 0 and "no run in the store" in capsys.readouterr().out
    for event in fixture_events():
        Store().append("r-20261201-gemma4", event)
    assert main(["runs"]) == 0 and "finished" in capsys.readouterr().out
    for suffix in ("html", "ipynb", "md"):
        assert main(["report", "r-2026", "--to", str(tmp_path / f"x.{suffix}")]) == 0
        assert "gemma4" in (tmp_path / f"x.{suffix}").read_text("utf-8")
    assert main(["report", "r-1999"]) == 2 and "there is no run" in capsys.readouterr().err
