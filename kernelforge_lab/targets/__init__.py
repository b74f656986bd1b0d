"""Devices kernels are built for: ``get("cpu")``."""

from __future__ import annotations

from ..exc import ProblemError
from .base import Built, DeviceInfo, Launcher, Target

__all__ = ["NAMES", "Built", "DeviceInfo", "Launcher", "Target", "get", "require_compiler"]

NAMES = ("cpu", "cuda")


def get(name: str, arch: str | None = None, *, threads: int | None = None) -> Target:
    """The target called ``name``. ``threads`` limits a cpu kernel (default: all this process may use).

    ``arch`` names the architecture to compile for (``sm_90``; default the GPU's own); the cpu target only
    knows its own.
    """
    if name == "cpu":
        if arch is not None:
            raise ProblemError(
                f"The cpu target cannot compile for {arch!r}.", "Leave arch out: it builds for this machine."
            )
        from .cpu import CpuTarget

        return CpuTarget(threads)
    if name == "cuda":
        from .cuda import CudaTarget

        return CudaTarget(arch)
    raise ProblemError(f"There is no target {name!r}.", f"Use one of: {', '.join(NAMES)}.")


def require_compiler(name: str) -> None:
    """Raises NoCompilerError, which says how to get one, when nothing here compiles for the target."""
    if name == "cuda":
        from .cuda_compiler import find_cuda_compiler

        find_cuda_compiler()
    else:
        from .toolchain import find_compiler

        find_compiler()
