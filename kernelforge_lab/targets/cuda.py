"""The cuda target: kernels are CUDA C++, compiled to a cubin for one SM and launched through PyCUDA.

Torch is never imported here: the process that runs candidates has none. Without a GPU, and with ``arch``,
everything works but loading.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..exc import CompileError, KernelSourceError, NoDeviceError, ProblemError
from ..kernels.format import KernelFile, LaunchPlan, parse
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from . import cache, sm
from .base import Built, DeviceInfo
from .cubin import Function, Usage, read_cubin, read_usage, without_usage
from .cuda_compiler import CudaCompiler, find_cuda_compiler
from .cuda_device import absent_device, device_arch, device_info
from .cuda_launch import CudaLauncher, argument_format
from .cuda_source import HEADERS, translation_unit


@dataclass(frozen=True)
class CudaTarget:
    """``wish`` is the SM to compile for (None: the GPU's own), ``index`` the GPU, ``compiler`` its name."""

    wish: str | None = None
    index: int = 0
    compiler: str | None = None

    def __post_init__(self) -> None:
        if self.wish is not None and sm.number(self.wish) is None:
            raise ProblemError(f"arch {self.wish!r} is no SM.", "For example sm_80, sm_90 or sm_120.")

    @property
    def name(self) -> str:
        return "cuda"

    @property
    def arch(self) -> str:
        """The SM kernels are compiled for. Raises NoDeviceError when it is neither given nor here."""
        return self.wish or device_arch(self.index)

    def device(self) -> DeviceInfo:
        """The GPU; with ``arch`` and no GPU, a stand-in for it. Raises NoDeviceError without both."""
        try:
            return device_info(self.index)
        except NoDeviceError:
            if self.wish is None:
                raise
            return absent_device(self.wish)

    def build(self, kernel: Kernel, region: Region) -> Built:
        """Compile ``kernel`` for ``region``, or take it from the cache. Needs no GPU when ``arch`` is given.

        Raises KernelSourceError, CompileError (the compiler's words, or why no launch can work),
        NoCompilerError or NoDeviceError.
        """
        file = parse(kernel.source)
        if file.target != self.name:
            raise KernelSourceError(file.target_line, f"the kernel is for {file.target}", "target cuda")
        plan = file.resolve(region, kernel.params)
        tensors = (*region.input_names, *region.output_names)
        compiler = find_cuda_compiler(self.compiler)
        self._check_arch(compiler)
        unit = translation_unit(file, plan, tensors)
        key = cache.content_key(compiler.version, self.arch, json.dumps(HEADERS), unit)
        entry = cache.look_up("cuda", key)
        is_cached = entry is not None
        if entry is None:
            entry = _compile(compiler, self.arch, unit, key)
        functions = read_cubin(entry.binary.read_bytes())
        usage = {name: Usage(*numbers) for name, numbers in entry.notes["usage"].items()}
        _check_launches(file, plan, functions, usage, self.arch)
        return Built(
            path=str(entry.binary),
            plan=plan,
            tensors=tensors,
            binary_hash=_twin_hash(plan, functions),
            compile_s=entry.notes["compile_s"],
            log=entry.notes["log"],
            resources=_resources(plan, functions, usage, self.arch),
            cached=is_cached,
        )

    def load(self, built: Built) -> CudaLauncher:
        """Load on the GPU, in the context torch uses. Raises CompileError or NoDeviceError."""
        return CudaLauncher(built, self.index)

    def _check_arch(self, compiler: CudaCompiler) -> None:
        known, wanted = compiler.archs, sm.number(self.arch)
        if known and wanted not in known:
            names = ", ".join(f"sm_{n}" for n in known)
            raise ProblemError(f"{compiler.version} cannot compile for {self.arch}.", f"It knows {names}.")


def _compile(compiler: CudaCompiler, arch: str, unit: str, key: str) -> cache.Entry:
    start = time.perf_counter()
    cubin, log = compiler.compile(unit, arch, HEADERS)
    compile_s = time.perf_counter() - start
    notes: dict[str, Any] = {
        "compile_s": compile_s,
        "log": without_usage(log),
        "usage": {name: _numbers(usage) for name, usage in read_usage(log).items()},
        "arch": arch,
        "compiler": compiler.version,
    }
    with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
        output = Path(folder) / "kernel.cubin"
        output.write_bytes(cubin)
        return cache.put("cuda", key, output, notes)


def _numbers(usage: Usage) -> tuple[int, int, int, int]:
    return usage.registers, usage.shared_bytes, usage.stack_bytes, usage.spill_bytes


def _check_launches(
    file: KernelFile,
    plan: LaunchPlan,
    functions: Mapping[str, Function],
    usage: Mapping[str, Usage],
    arch: str,
) -> None:
    """What the driver would refuse, said beforehand with a reason. Raises KernelSourceError, CompileError."""
    limits = sm.multiprocessor(arch)
    for declared, launch in zip(file.launches, plan.launches, strict=True):
        line, name = declared.line, launch.function
        function, used = functions.get(name), usage.get(name, Usage())
        if function is None:
            raise KernelSourceError(
                line, f"the source has no kernel {name}", f'extern "C" __global__ void {name}'
            )
        argument_format(launch, function, line)
        threads = math.prod(launch.block)
        if function.threads_max and threads > function.threads_max:
            raise KernelSourceError(
                line, f"block has {threads} threads", f"at most {function.threads_max}, its __launch_bounds__"
            )
        shared_bytes = used.shared_bytes + launch.smem_bytes
        if shared_bytes > limits.block_shared_bytes:
            raise KernelSourceError(
                line,
                f"{name} needs {shared_bytes} bytes of shared memory ({used.shared_bytes} of them static)",
                f"at most {limits.block_shared_bytes} on {arch}",
            )
        if sm.blocks_per_sm(arch, threads, used.registers, shared_bytes) == 0:
            raise CompileError(
                f"{name} uses {used.registers} registers in each of {threads} threads: "
                f"more than the {sm.REGISTERS} of {arch}.",
                f"Use a smaller block, or __launch_bounds__({threads}).",
            )


def _resources(
    plan: LaunchPlan, functions: Mapping[str, Function], usage: Mapping[str, Usage], arch: str
) -> dict[str, float]:
    """The worst launch of each kind: registers and bytes the largest, occupancy the smallest."""
    rows, names = [], {launch.function for launch in plan.launches}
    for launch in plan.launches:
        used, threads = usage.get(launch.function, Usage()), math.prod(launch.block)
        shared_bytes = used.shared_bytes + launch.smem_bytes
        rows.append((used, shared_bytes, sm.occupancy(arch, threads, used.registers, shared_bytes)))
    return {
        "registers": float(max(used.registers for used, _, _ in rows)),
        "shared_bytes": float(max(shared for _, shared, _ in rows)),
        "spill_bytes": float(max(used.spill_bytes for used, _, _ in rows)),
        "stack_bytes": float(max(used.stack_bytes for used, _, _ in rows)),
        "occupancy": min(share for _, _, share in rows),
        "text_bytes": float(sum(functions[name].text_bytes for name in names)),
    }


def _twin_hash(plan: LaunchPlan, functions: Mapping[str, Function]) -> str:
    """Equal for sources that launch the same code in the same way, whatever their functions are called."""
    launches = [(functions[launch.function].code_hash, *launch[1:]) for launch in plan.launches]
    return cache.content_key(repr(launches), repr(plan.workspaces))[:16]
