from __future__ import annotations

from pathlib import Path

import pytest

from kernelforge_lab.exc import ProblemError
from kernelforge_lab.problem import CONTRACT, is_problem, load_problem, make_problem

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size, scale=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))
        self.scale = scale

    def forward(self, x):
        return x * self.weight * self.scale
"""
INPUTS = "def get_inputs():\n    return [torch.randn(2, 3)]\n"
INIT = "def get_init_inputs():\n    return [3]\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "problem.py"
    path.write_text(text)
    return path


def test_makes_the_model_and_its_inputs(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, MODEL + INPUTS + INIT))
    assert problem.title == "problem"
    assert problem.model(*problem.args).shape == (2, 3)


def test_the_seed_decides_weights_and_inputs(tmp_path: Path) -> None:
    path = write(tmp_path, MODEL + INPUTS + INIT)
    first, again, other = (load_problem(path, seed=seed) for seed in (1, 1, 2))
    assert first.model(*first.args).equal(again.model(*again.args))
    assert not first.args[0].equal(other.args[0])
    assert not first.model.weight.equal(other.model.weight)


def test_init_inputs_may_be_keywords_or_absent(tmp_path: Path) -> None:
    keywords = "def get_init_inputs():\n    return {'size': 3, 'scale': 2.0}\n"
    assert load_problem(write(tmp_path, MODEL + INPUTS + keywords)).model.scale == 2.0
    plain = "import torch\nclass Model(torch.nn.Module):\n    pass\n" + INPUTS
    assert load_problem(write(tmp_path, plain)).args[0].shape == (2, 3)


def test_two_files_of_one_name_do_not_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = write(tmp_path, MODEL + INPUTS + INIT)
    two = write(tmp_path / "other", MODEL + INPUTS + INIT.replace("3", "3, 5.0"))
    assert (load_problem(one).model.scale, load_problem(two).model.scale) == (1.0, 5.0)


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = 1\n", "defines no Model."),
        ("Model = 3\n", "defines a Model that is no torch.nn.Module but 3."),
        (MODEL, "defines no function get_inputs."),
        (MODEL + "get_inputs = 4\n", "defines no function get_inputs."),
        (MODEL + INPUTS + "def get_init_inputs():\n    return 3\n", "get_init_inputs() of {file} returned int."),
        (MODEL + INPUTS + "def get_init_inputs():\n    return []\n", "{file}: Model(…) raised TypeError: "),
        (MODEL + INIT + "def get_inputs():\n    return torch.ones(2)\n", "get_inputs() of {file} returned Tensor."),
        (MODEL + INIT + "def get_inputs():\n    return [1 / 0]\n", "{file}, line 16: get_inputs() raised ZeroDivisionError: division by zero."),
        ("import torch\nimport no_such_package\n", "{file}, line 2: running it raised ModuleNotFoundError: "),
        ("def broken(:\n", "{file}, line 1: running it raised SyntaxError: "),
    ],
)  # fmt: skip
def test_bad_files_are_named_with_line_and_cause(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProblemError) as error:
        load_problem(path)
    assert message.format(file=path) in error.value.message
    assert error.value.hint


def test_missing_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"none\.py does not exist"):
        load_problem(tmp_path / "none.py")
    with pytest.raises(ProblemError, match="is a folder"):
        load_problem(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ProblemError, match="is no Python file"):
        load_problem(tmp_path / "notes.txt")


def test_recognises_a_cell_that_follows_the_contract() -> None:
    scope: dict[str, object] = {}
    exec(MODEL + INPUTS + INIT, scope)
    assert is_problem(scope)
    assert make_problem(scope).title == "Model"
    del scope["get_inputs"]
    assert not is_problem(scope)
    with pytest.raises(ProblemError) as error:
        make_problem(scope)
    assert str(error.value) == f"the cell defines no function get_inputs. {CONTRACT}"
