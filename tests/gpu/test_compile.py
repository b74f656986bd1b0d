"""Without a GPU: the kernels of this folder fail at compiling exactly where they are meant to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelforge_lab import targets
from kernelforge_lab.exc import CompileError, KernelSourceError

from .kernels import BAD, GOOD, job

EARLY = {"parse_error": KernelSourceError, "compile_error": CompileError}


@pytest.mark.parametrize("path", [*BAD, *GOOD], ids=lambda p: p.stem)
def test_a_kernel_compiles_or_says_why_not(path: Path) -> None:
    task, expected = job(path)
    target = targets.get("cuda", "sm_90")
    errors = [EARLY[status] for status in expected & EARLY.keys()]
    if errors:
        with pytest.raises(errors[0]):
            target.build(task.kernel, task.region)
    else:
        assert target.build(task.kernel, task.region).resources["registers"] > 0
