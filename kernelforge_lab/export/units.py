"""What the exported kernel is built from: C++ text to compile where it runs, or cubins and their launches."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from ..kernels.format import parse
from ..kernels.kernel import Kernel
from ..kernels.region import Region


def build_json(target: str) -> dict[str, Any]:
    """What all kernels share. The cpu's prelude is a file of the folder, written by ``unit_json``."""
    if target != "cpu":
        return {}
    from ..targets.cpu import build_flags

    return {"prelude": "units/prelude_cpu.h", "flags": build_flags()}


def unit_json(
    root: Path, kernel: Kernel, region: Region, *, arch: str | None, threads: int | None
) -> dict[str, Any]:
    """Write the kernel's build inputs under ``root``; what the manifest says of them.

    ``threads`` are those a cpu kernel was proven with: their number is part of its code.

    Raises OSError, and for cuda whatever compiling raises.
    """
    from ..deploy.guard import wants_aligned

    made = (
        _cpu(root, kernel, region, threads) if kernel.target == "cpu" else _cuda(root, kernel, region, arch)
    )
    aligned = kernel.target == "cuda" or wants_aligned(kernel.source)
    return {**made, "aligned": aligned}


def _cpu(root: Path, kernel: Kernel, region: Region, threads: int | None) -> dict[str, Any]:
    from ..targets.cpu import CpuTarget
    from ..targets.cpu_source import translation_unit

    file = parse(kernel.source)
    plan = file.resolve(region, kernel.params, threads=threads or CpuTarget().threads)
    unit = f"units/{region.hash}.cpp"
    (root / unit).write_text(translation_unit(file, plan, (*region.input_names, *region.output_names)))
    (root / "units" / "prelude_cpu.h").write_text(
        (files("kernelforge_lab.targets") / "prelude_cpu.h").read_text()
    )
    return {"unit": unit, "workspaces": [list(workspace) for workspace in plan.workspaces]}


def _cuda(root: Path, kernel: Kernel, region: Region, arch: str | None) -> dict[str, Any]:
    from ..targets.cubin import read_cubin
    from ..targets.cuda import CudaTarget
    from ..targets.cuda_launch import argument_format

    target = CudaTarget(arch)
    built = target.build(kernel, region)
    data = Path(built.path).read_bytes()
    name = f"units/{region.hash}.{target.arch}.cubin"
    (root / name).write_bytes(data)
    functions = read_cubin(data)
    return {
        "cubins": {target.arch: name},
        "workspaces": [list(workspace) for workspace in built.plan.workspaces],
        "launches": [
            {
                "function": launch.function,
                "grid": [*launch.grid, 1, 1][:3],
                "block": [*launch.block, 1, 1][:3],
                "smem_bytes": launch.smem_bytes,
                "args": list(launch.args),
                "format": argument_format(launch, functions[launch.function]),
            }
            for launch in built.plan.launches
        ],
    }
