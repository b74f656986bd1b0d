"""Problem files: ``Model``, ``get_inputs()`` and ``get_init_inputs()`` (KernelBench's contract)."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from .exc import ProblemError

if TYPE_CHECKING:
    from torch import nn

CONTRACT: Final = "A problem defines a class Model, get_inputs() and get_init_inputs()."


@dataclass(frozen=True)
class Problem:
    """A model with the arguments of one call, made with a fixed seed."""

    title: str
    model: nn.Module
    args: tuple[Any, ...]

    def on(self, device: str) -> Problem:
        """The same call with model and inputs moved to a torch device. Raises ProblemError."""
        try:
            moved = tuple(arg.to(device) if hasattr(arg, "to") else arg for arg in self.args)
            return Problem(self.title, self.model.to(device), moved)
        except (RuntimeError, AssertionError) as error:  # no GPU, a torch without CUDA, too little memory
            words = str(error).strip().split("\n")[0].rstrip(".")
            raise ProblemError(
                f"{self.title} cannot be moved to {device}: {words}.",
                "kernelforge doctor says what is missing.",
            ) from error


def is_problem(names: Mapping[str, Any]) -> bool:
    """Whether ``names`` (a module's, or a notebook cell's) follow the contract."""
    return isinstance(names.get("Model"), type) and callable(names.get("get_inputs"))


def load_problem(path: str | Path, *, seed: int = 0) -> Problem:
    """Run a problem file and make its model and inputs. Raises ProblemError naming file, line and cause."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise ProblemError(f"{file} {what}.", f"Give a Python file. {CONTRACT}")
    module = _import(file)
    return make_problem(vars(module), title=file.stem, source=str(file), seed=seed)


def make_problem(
    names: Mapping[str, Any], *, title: str = "Model", source: str = "the cell", seed: int = 0
) -> Problem:
    """Make model and inputs from a namespace.

    ``get_init_inputs`` may be absent (no arguments) or return a dict of keyword arguments.
    """
    import torch
    from torch import nn

    kind = names.get("Model")
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        found = "no Model" if kind is None else f"a Model that is no torch.nn.Module but {kind!r}"
        raise ProblemError(f"{source} defines {found}.", CONTRACT)
    if not callable(names.get("get_inputs")):
        raise ProblemError(f"{source} defines no function get_inputs.", CONTRACT)
    torch.manual_seed(seed)
    init = _call(names.get("get_init_inputs", list), "get_init_inputs()", source)
    if not isinstance(init, list | tuple | dict):
        raise ProblemError(
            f"get_init_inputs() of {source} returned {type(init).__name__}.",
            "Return a list of arguments of Model (or a dict of keyword arguments).",
        )
    positional, keywords = ((), init) if isinstance(init, dict) else (tuple(init), {})
    torch.manual_seed(seed)
    model = _call(lambda: kind(*positional, **keywords), "Model(…)", source)
    inputs = _call(names["get_inputs"], "get_inputs()", source)
    if not isinstance(inputs, list | tuple):
        raise ProblemError(
            f"get_inputs() of {source} returned {type(inputs).__name__}.",
            "Return a list of arguments of forward.",
        )
    return Problem(title, model, tuple(inputs))


def _import(file: Path) -> ModuleType:
    # A name of its own for each file: two files called problem.py must not see each other.
    name = f"kernelforge_problem_{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ProblemError(f"{file} is no Python file.", f"Give a .py file. {CONTRACT}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _broken(error, "running it", str(file)) from error
    return module


def _call(function: Callable[[], Any], what: str, source: str) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _broken(error, what, source) from error


def _broken(error: BaseException, what: str, source: str) -> ProblemError:
    """``problem.py, line 12: get_inputs() raised ValueError: …``."""
    if isinstance(error, SyntaxError):
        line = error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        names = {source, str(Path(source).absolute())}
        line = next((f.lineno for f in reversed(frames) if f.filename in names), None)
    where = f"{source}, line {line}" if line else source
    return ProblemError(
        f"{where}: {what} raised {type(error).__name__}: {error}.", "Correct it and try again."
    )
