"""The two compilers of the cuda target: NVRTC (0.1 s, needs no toolkit) and nvcc. Neither needs a GPU."""

from __future__ import annotations

import atexit
import base64
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ..exc import CompileError, NoCompilerError
from .toolchain import COMPILE_TIMEOUT_S, Compiler, trim_log

NAMES: Final = ("nvrtc", "nvcc")
CHOICE_VARIABLE: Final = "KERNELFORGE_CUDA_COMPILER"
INSTALL: Final = "pip install 'kernelforge-lab[cuda]'"
_START_TIMEOUT_S: Final = 60.0
_COMMON: Final = ("-std=c++17", "-w")
_NVRTC: Final = (*_COMMON, "-default-device", "--ptxas-options=-v")
_NVCC: Final = (*_COMMON, "-cubin", "-Xptxas=-v")


class Compiled(NamedTuple):
    """A cubin and everything the compiler said."""

    cubin: bytes
    log: str


class CudaCompiler(Protocol):
    """``version`` is what it says about itself; ``archs`` the SM numbers it knows (empty: unsaid)."""

    name: str

    @property
    def version(self) -> str: ...

    @property
    def archs(self) -> tuple[int, ...]: ...

    def compile(self, source: str, arch: str, headers: Mapping[str, str]) -> Compiled:
        """Raises CompileError with the compiler's words."""


def find_cuda_compiler(wish: str | None = None) -> CudaCompiler:
    """The compiler called ``wish`` (default: the environment's choice), else NVRTC, else nvcc.

    Raises NoCompilerError that says how to get one.
    """
    wish = wish or os.environ.get(CHOICE_VARIABLE, "").strip() or None
    if wish is not None and wish not in NAMES:
        raise NoCompilerError(f"There is no CUDA compiler {wish!r}.", f"Use one of: {', '.join(NAMES)}.")
    if wish == "nvcc":
        return nvcc()
    try:
        return nvrtc()
    except NoCompilerError:
        if wish is None and shutil.which("nvcc"):
            return nvcc()
        raise


@lru_cache(maxsize=1)
def nvrtc() -> Nvrtc:
    """NVRTC of this process, started when first asked for. Raises NoCompilerError."""
    return Nvrtc()


@lru_cache(maxsize=1)
def nvcc() -> Nvcc:
    """The nvcc on PATH. Raises NoCompilerError."""
    path = shutil.which("nvcc")
    if path is None:
        raise NoCompilerError("No nvcc on PATH.", f"Install the CUDA toolkit, or use NVRTC: {INSTALL}.")
    return Nvcc(path)


class Nvrtc:
    """A compiler process that lives as long as ours; replaced when a source crashed or overstrained it."""

    name = "nvrtc"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._hello = self._start()
        atexit.register(self.close)

    @property
    def version(self) -> str:
        return "NVRTC " + ".".join(map(str, self._hello["version"]))

    @property
    def archs(self) -> tuple[int, ...]:
        return tuple(self._hello["archs"])

    def compile(self, source: str, arch: str, headers: Mapping[str, str]) -> Compiled:
        request = {
            "source": source, "options": [f"--gpu-architecture={arch}", *_NVRTC], "headers": dict(headers)
        }  # fmt: skip
        with self._lock:
            if self._process is None:
                self._start()
            answer = self._ask(request)
        if not answer["ok"]:
            raise CompileError(trim_log(_errors_only(answer["log"])))
        return Compiled(base64.b64decode(answer["cubin"]), answer["log"])

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _start(self) -> dict[str, Any]:
        self._folder = tempfile.TemporaryDirectory(prefix="kernelforge-nvrtc-")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nvrtc_process.py"))],
            cwd=self._folder.name,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a notebook is not for it
        )
        hello = self._receive(_START_TIMEOUT_S)
        if hello is None or "error" in hello:
            self.close()
            words = hello["error"] if hello else "its process ended"
            raise NoCompilerError(f"NVRTC cannot be loaded ({words}).", f"Install it with: {INSTALL}.")
        return hello

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = self._receive(COMPILE_TIMEOUT_S)
        except OSError:
            answer = None
        if answer is None:
            late = process.poll() is None
            self.close()
            reason = f"took longer than {COMPILE_TIMEOUT_S:.0f} s" if late else "crashed on this source"
            raise CompileError(
                f"The compiler {reason}.", "Simplify templates, unrolling or constant expressions."
            )
        return answer

    def _receive(self, limit_s: float) -> dict[str, Any] | None:
        process = self._process
        assert process is not None and process.stdout is not None
        if not select.select([process.stdout], [], [], limit_s)[0]:
            return None
        line = process.stdout.readline()
        answer: dict[str, Any] | None = json.loads(line) if line else None
        return answer


class Nvcc:
    """NVIDIA's compiler driver, one process a kernel.

    Called by ourselves: PyCUDA needs a driver even to compile, has no time limit and passes the whole
    environment on.
    """

    name = "nvcc"

    def __init__(self, path: str) -> None:
        self._compiler = Compiler(path, "nvcc", _nvcc_version(path))

    @property
    def version(self) -> str:
        return self._compiler.version

    @property
    def archs(self) -> tuple[int, ...]:
        return ()

    def compile(self, source: str, arch: str, headers: Mapping[str, str]) -> Compiled:
        with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
            for name, text in headers.items():
                if name in _OWN_HEADERS:
                    (Path(folder) / name).write_text(text)
            unit, output = Path(folder) / "kernel.cu", Path(folder) / "kernel.cubin"
            unit.write_text(source)
            flags: Sequence[str] = [*_NVCC, f"-arch={arch}", f"-I{folder}", "-o", str(output), str(unit)]
            try:
                log = self._compiler.run(flags)
            except CompileError as error:
                words = error.message.replace(f"{folder}/", "")
                raise CompileError(words, error.hint) from None
            return Compiled(output.read_bytes(), log)


# Of the headers we stand in for, those that must win over the toolkit's own.
_OWN_HEADERS: Final = ("cuda_bf16.h", "cuda_fp16.h")


def _nvcc_version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, timeout=20, check=False)
    found = re.search(r"release [\d.]+, V([\d.]+)", done.stdout.decode(errors="replace"))
    if done.returncode or found is None:
        raise NoCompilerError(
            f"{path} does not work.", f"Install the CUDA toolkit anew, or use NVRTC: {INSTALL}."
        )
    return f"nvcc {found[1]}"


def _errors_only(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith("ptxas info"))


def _environment() -> dict[str, str]:
    """What finding packages and libraries needs; keys and tokens stay out of a compiler's reach."""
    kept = (
        "PATH",
        "HOME",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "CUDA_HOME",
        "CUDA_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    )
    paths = [entry for entry in sys.path if entry]
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return {**found, "PYTHONPATH": os.pathsep.join(paths), "LC_ALL": "C"}
