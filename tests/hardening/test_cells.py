"""``%%forge`` on cells that go wrong or are odd: the cell's own result stands, and a sentence says what happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
import torch
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from kernelforge_lab.run import Run

SETUP = """
import torch
from torch import nn
class Soft(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, -1)
class Broken(nn.Module):
    def forward(self, x):
        raise ValueError("no such layer")
model, broken = Soft().eval(), Broken()
x = torch.randn(16, 64)
"""


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()
    shell.reset()
    shell.run_line_magic("load_ext", "kernelforge_lab")
    shell.ex(SETUP)
    yield shell
    shell.run_line_magic("unload_ext", "kernelforge_lab")


def forge(shell: Any, cell: str, line: str = "--trials 0 --wait") -> Any:
    return shell.run_cell_magic("forge", line, cell)


def test_a_cell_without_a_model_keeps_its_value(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert forge(shell, "y = 6 * 7\ny") is None
    said = capsys.readouterr()
    assert shell.user_ns["y"] == 42 and "42" in said.out
    assert "called no torch.nn.Module" in said.err


def test_a_model_that_raises_raises_the_persons_own_error(shell: Any) -> None:
    with pytest.raises(ValueError, match="no such layer"):
        forge(shell, "broken(x)")
    assert "_forge" not in shell.user_ns


def test_a_model_that_answers_only_once_keeps_its_answer(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = "class Once(Soft):\n  def forward(self, x):\n    used.append(1); assert len(used) == 1; return x\nused = []\ny = Once()(x)\ny.sum()"
    assert forge(shell, cell) is None
    assert torch.equal(shell.user_ns["y"], shell.user_ns["x"])
    assert "The model raised AssertionError" in capsys.readouterr().err


def test_the_cells_random_numbers_go_on_as_without_us(shell: Any) -> None:
    cell = "torch.manual_seed(1); y = model(torch.randn(16, 64)); z = torch.randn(3)"
    shell.ex(cell + "; after = torch.randn(3)")
    expected = [shell.user_ns[name] for name in ("y", "z", "after")]
    run = forge(shell, cell)
    shell.ex("after = torch.randn(3)")
    assert isinstance(run, Run)
    assert all(torch.equal(a, shell.user_ns[n]) for a, n in zip(expected, ("y", "z", "after"), strict=True))


def test_the_same_model_twice_gives_two_runs(shell: Any) -> None:
    first, second = (forge(shell, "model(x);") for _ in range(2))
    assert first.id != second.id
    assert first.state == second.state == "finished"
    regions = [[item.region.hash for item in run.workload.regions] for run in (first, second)]
    assert regions[0] == regions[1]


def test_a_huge_value_is_displayed_as_ipython_would(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    forge(shell, "model(x)\n'a' * 10_000_000;")
    assert len(capsys.readouterr().out) < 100_000
    assert len(shell.user_ns["_forge_value"]) == 10_000_000


def test_autocast_is_said_and_the_cell_keeps_its_dtype(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = "lin = nn.Linear(64, 64).eval()\nwith torch.no_grad(), torch.autocast('cpu', torch.bfloat16):\n  y = lin(x)"
    run = forge(shell, cell)
    assert isinstance(run, Run)
    assert shell.user_ns["y"].dtype is torch.bfloat16
    assert "autocast" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line, words",
    [
        ("--trails 3", "unrecognized arguments: --trails"),
        ("--trials -1", "trials must be a whole number of at least 0"),
        ("--minutes 0", "minutes must be a number above 0"),
        ("--minutes nan", "minutes must be a number above 0"),
        ("--target tpu", "invalid choice: 'tpu'"),
        ("nobody", "There is no variable 'nobody'"),
    ],
)
def test_a_wrong_option_is_one_line(
    shell: Any, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        forge(shell, "y = model(x)", line)
    except UsageError as error:
        said = str(error)
    else:
        said = capsys.readouterr().err
    assert words in said + capsys.readouterr().err


def test_a_notebook_without_a_person_runs_through_all_of_it() -> None:
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook()
    cells = [
        "%load_ext kernelforge_lab" + SETUP,
        "%%forge --trials 0\n6 * 7",
        "%%forge --trials 0\nwith torch.no_grad():\n    y = model(x)\ny.shape",
        "print(_forge.state, bool(torch.equal(y, model(x))), _forge.apply() is model)",
    ]
    book.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    NotebookClient(book, timeout=120).execute()
    said = [
        " ".join(str(o.get("text", "")) + str(o.get("data", {}).get("text/plain", "")) for o in cell.outputs)
        for cell in book.cells
    ]
    assert "called no torch.nn.Module" in said[1] and "42" in said[1]
    assert "torch.Size([16, 64])" in said[2]
    assert "finished True True" in said[3]
