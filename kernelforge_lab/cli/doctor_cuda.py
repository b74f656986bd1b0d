"""What ``kernelforge doctor`` says about NVIDIA GPUs: facts are collected, then judged without a GPU."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from typing import Final

from ..exc import ForgeError
from ..targets import sm
from .finding import Finding

_MEMORY_MIN_BYTES: Final = 2 * 2**30
_GIB: Final = 2**30
_PYCUDA: Final = "pip install pycuda  (built from source in 1-2 minutes: needs g++ and the CUDA headers)"
_COMPILER: Final = "pip install 'kernelforge-lab[nvrtc]'"


@dataclass(frozen=True)
class Gpu:
    """Bytes of memory; ``others`` are (process id, name) of other processes that compute on it."""

    name: str
    arch: str
    free_bytes: int
    total_bytes: int
    others: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Facts:
    """What there is. Versions as CUDA numbers them (13000 is 13.0), 0 or "" where something is absent.

    ``problem`` is what stopped us from asking the driver. ``compiler_archs`` is empty when it does not say.
    """

    has_driver: bool = False
    pycuda: str = ""
    pycuda_cuda: int = 0
    driver_cuda: int = 0
    torch_cuda: str = ""
    compiler: str = ""
    compiler_archs: tuple[int, ...] = ()
    compiler_problem: str = ""
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""
    todo: str = field(default="", compare=False)


def judge(facts: Facts) -> Iterator[Finding]:
    """Findings, none of which is ``missing``: the cpu target needs no GPU."""
    if facts.compiler:
        runs = "" if facts.has_driver else ": compiles for any GPU with --target cuda --arch sm_90"
        yield Finding("cuda compiler", "ok", facts.compiler + runs)
    else:
        yield Finding("cuda compiler", "optional", facts.compiler_problem or "none", _COMPILER)
    if not facts.has_driver:
        yield Finding(
            "cuda target", "optional", "no NVIDIA driver on this machine; the cpu target needs none"
        )
        return
    if not facts.pycuda:
        yield Finding("cuda target", "optional", "pycuda is not installed", _PYCUDA)
        return
    if facts.pycuda_cuda // 1000 > facts.driver_cuda // 1000 > 0:
        yield Finding(
            "cuda target",
            "optional",
            f"pycuda {facts.pycuda} was built for CUDA {_version(facts.pycuda_cuda)}, "
            f"the driver knows {_version(facts.driver_cuda)}",
            "update the driver, or build pycuda anew: pip install --force-reinstall --no-cache-dir pycuda",
        )
        return
    if facts.problem:
        yield Finding("cuda target", "optional", facts.problem, facts.todo)
        return
    if not facts.torch_cuda:
        yield Finding(
            "cuda target",
            "optional",
            "torch is a build without CUDA",
            "install torch from pytorch.org for your CUDA",
        )
        return
    yield Finding(
        "cuda target", "ok", f"pycuda {facts.pycuda}, torch for CUDA {facts.torch_cuda}, "
        f"driver for CUDA {_version(facts.driver_cuda)}"
    )  # fmt: skip
    for index, gpu in enumerate(facts.gpus):
        yield _gpu(index, gpu, facts)


def _gpu(index: int, gpu: Gpu, facts: Facts) -> Finding:
    name = f"gpu {index}"
    size = f"{gpu.name} ({gpu.arch}), {gpu.free_bytes / _GIB:.1f} of {gpu.total_bytes / _GIB:.1f} GiB free"
    if facts.compiler_archs and sm.number(gpu.arch) not in facts.compiler_archs:
        newest = f"sm_{max(facts.compiler_archs)}"
        detail = f"{size}; {facts.compiler} cannot compile for it (newest {newest})"
        return Finding(name, "optional", detail, "pip install --upgrade nvidia-cuda-nvrtc")
    if gpu.free_bytes < _MEMORY_MIN_BYTES:
        return Finding(name, "optional", f"{size}: too little to judge on", "end what uses it")
    if gpu.others:
        listed = ", ".join(f"{who} ({pid})" for pid, who in gpu.others[:3])
        return Finding(name, "optional", f"{size}; also used by {listed}", "times are rough until that ends")
    return Finding(name, "ok", size)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def collect() -> Facts:
    """Ask compiler, driver, PyCUDA, torch and nvidia-smi. Never raises."""
    from ..targets.cuda_compiler import find_cuda_compiler
    from ..targets.cuda_device import driver, has_driver

    known: dict[str, object] = {"has_driver": has_driver()}
    try:
        compiler = find_cuda_compiler()
        known |= {"compiler": compiler.version, "compiler_archs": compiler.archs}
    except ForgeError as error:
        known |= {"compiler_problem": error.message}
    if not known["has_driver"]:
        return Facts(**known)  # type: ignore[arg-type]
    try:
        known["pycuda"] = metadata.version("pycuda")
        import pycuda.driver as cuda

        major, minor, _ = cuda.get_version()
        known |= {"pycuda_cuda": 1000 * major + 10 * minor, "driver_cuda": cuda.get_driver_version()}
        cuda = driver()
    except metadata.PackageNotFoundError:
        return Facts(**known)  # type: ignore[arg-type]
    except ForgeError as error:
        return Facts(**known, problem=error.message, todo=error.hint)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001 - a broken build raises anything on import
        return Facts(**known, problem=f"pycuda cannot be used ({error})", todo=_PYCUDA)  # type: ignore[arg-type]
    import torch

    known["torch_cuda"] = torch.version.cuda or ""
    known["gpus"] = tuple(_look(cuda, index) for index in range(cuda.Device.count()))
    return Facts(**known)  # type: ignore[arg-type]


def _look(cuda: object, index: int) -> Gpu:
    from ..targets.cuda_device import device_arch, device_info, entered

    info = device_info(index)
    with entered(index):
        free, total = cuda.mem_get_info()  # type: ignore[attr-defined]
    return Gpu(info.name, device_arch(index), free, total, _others(index))


def _others(index: int) -> tuple[tuple[int, str], ...]:
    """Other processes on a GPU, from nvidia-smi; () when it cannot tell."""
    path = shutil.which("nvidia-smi")
    if path is None:
        return ()
    query = [path, f"--id={index}", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = [
        row for row in csv.reader(done.stdout.splitlines()) if len(row) == 2 and row[0].strip().isdecimal()
    ]
    found = [(int(pid), name.strip().rsplit("/", 1)[-1]) for pid, name in rows]
    return tuple((pid, name) for pid, name in found if pid != os.getpid())
