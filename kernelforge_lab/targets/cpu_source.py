"""The C++ text that is really compiled: defines, the kernel's source, and one entry point.

The entry point is ours. It takes every address (workspaces, inputs, outputs) and makes the launches in
order, typed, so that a kernel is one call from Python and a wrong argument list is a compile error on
its own ``// forge: launch`` line rather than a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..kernels.format import KernelFile, LaunchPlan
from ..kernels.symbols import C_TYPES
from .defines import define_lines, literal

ENTRY: Final = "kf_entry"


def translation_unit(file: KernelFile, plan: LaunchPlan, tensors: Sequence[str]) -> str:
    """C++ for ``plan``; ``tensors`` are the region's input and output names, in order."""
    return "\n".join(
        [*define_lines(plan), '#line 1 "kernel.cpp"', file.source, *_entry(file, plan, tensors), ""]
    )


def _entry(file: KernelFile, plan: LaunchPlan, tensors: Sequence[str]) -> list[str]:
    types = {name: C_TYPES[dtype] for name, dtype, _ in plan.workspaces}
    types |= {name: f"{name.upper()}_T" for name in tensors}
    position = {name: i for i, name in enumerate(types)}
    parameters = ", ".join(f"void* kf_p{i}" for i in position.values())
    lines = [
        '#line 1 "entry"',
        f'extern "C" __attribute__((visibility("default"))) void {ENTRY}({parameters}) {{',
    ]
    for declared, launch in zip(file.launches, plan.launches, strict=True):
        args = ", ".join(
            literal(arg) if isinstance(arg, int) else f"({types[arg]}*)kf_p{position[arg]}"
            for arg in launch.args
        )
        lines += [f'#line {declared.line} "kernel.cpp"', f"  {launch.function}({args});"]
    return [*lines, "}"]
