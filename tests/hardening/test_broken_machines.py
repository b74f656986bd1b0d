"""A machine that lacks or loses something: said in words, and nobody's model or kernel pays for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import kernelforge_lab as kf
from kernelforge_lab import targets
from kernelforge_lab.exc import NoCompilerError
from kernelforge_lab.judge.ground import CpuGround
from kernelforge_lab.judge.pool import JudgePool

PROBLEM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        {body}
        return torch.relu(x * 2 + 1)
def get_inputs():
    return [torch.randn(64, 128)]
"""


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CXX", "KERNELFORGE_CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def ground() -> Iterator[CpuGround]:
    threads = torch.get_num_threads()
    ground = CpuGround(targets.get("cpu", threads=2).device())
    yield ground
    ground.close()
    torch.set_num_threads(threads)


def test_without_a_compiler_the_run_fails_at_once_with_a_next_step(no_compiler: None) -> None:
    model, x = nn.Softmax(-1).eval(), torch.randn(64, 128)
    run = kf.forge(model, x, trials=2, minutes=1, wait=True)
    assert run.state == "failed"
    assert "No C++ compiler on PATH" in run.history.message
    assert "Install one with:" in run.history.message
    assert run.workload is not None and len(run.table()) == 1, "where the time goes is known all the same"
    assert run.apply() is model


def test_without_a_compiler_there_is_no_judge(no_compiler: None) -> None:
    with pytest.raises(NoCompilerError, match="Install one with"):
        JudgePool("cpu")


def test_an_idle_runner_that_is_killed_is_replaced(ground: CpuGround) -> None:
    for _ in range(2):
        ground._spare.process.kill()
        ground._spare.process.wait()
        ground.wait_ready()
    ground._spare.process.kill()
    ground._spare.process.wait()
    runner = ground.take_runner()
    runner.wait_ready()
    ground.give_back(runner, clean=True)


def command(
    folder: Path, *words: str, body: str = "pass", **environment: str
) -> subprocess.CompletedProcess[str]:
    """``kernelforge …`` on PROBLEM in a folder with a difficult name."""
    place = folder / "ein Ordner für 模型"
    place.mkdir(exist_ok=True)
    (place / "problem.py").write_text(PROBLEM.format(body=body))
    return subprocess.run(
        [sys.executable, "-m", "kernelforge_lab.cli", *words],
        cwd=place,
        env={**os.environ, "TMPDIR": str(place), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_the_problem_prints_stays_out_of_the_json(tmp_path: Path) -> None:
    done = command(tmp_path, "regions", "problem.py", "--json", body="print('words')")
    assert len(json.loads(done.stdout)["regions"]) == 1
    assert "words" in done.stderr


@pytest.mark.parametrize(
    "body, words",
    [
        ("import sys; sys.exit(3)", "The model raised SystemExit: 3."),
        ("input('name?')", "The model raised EOFError"),
        ("raise ValueError('x' * 99999)", "The model raised ValueError: xxx"),
    ],
)
def test_a_problem_that_ends_the_program_is_an_error_of_the_problem(
    tmp_path: Path, body: str, words: str
) -> None:
    done = command(tmp_path, "regions", "problem.py", "--json", body=body)
    assert done.returncode == 2
    said = json.loads(done.stdout)
    assert said["error"] == "CaptureError"
    assert said["message"].startswith(words) and len(said["message"]) < 1000


def test_nowhere_to_write_costs_the_store_and_not_the_run(tmp_path: Path) -> None:
    nowhere = "/proc/1/nowhere" if sys.platform == "linux" else str(tmp_path / "problem.py" / "nowhere")
    done = command(
        tmp_path, "forge", "problem.py", "--trials", "0", "--json",
        HOME=nowhere, KERNELFORGE_CACHE=f"{nowhere}/kernels", KERNELFORGE_STORE=f"sqlite:///{nowhere}/runs.sqlite",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["regions"]) == 1
