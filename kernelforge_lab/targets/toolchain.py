"""The C++ compiler of this machine: finding it, asking who it is, running it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ..exc import CompileError, NoCompilerError

# g++ first: it links the OpenMP runtime that torch's Linux wheels carry (libgomp).
CANDIDATES: Final = ("g++", "clang++", "c++", "x86_64-conda-linux-gnu-c++", "aarch64-conda-linux-gnu-c++")
_OVERRIDES: Final = ("KERNELFORGE_CXX", "CXX")
# What a compiler needs from the environment; everything else (keys, tokens) stays out of its reach.
_ENVIRONMENT: Final = ("PATH", "TMPDIR", "SDKROOT", "CONDA_BUILD_SYSROOT", "DEVELOPER_DIR", "SYSTEMROOT")
# A generated kernel takes 0.1-2 s; templates that make a compiler think for longer are not worth it.
COMPILE_TIMEOUT_S: Final = 60.0
LOG_CHARS_MAX: Final = 6000


@dataclass(frozen=True, slots=True)
class Compiler:
    """``family`` is ``gcc`` or ``clang``; ``version`` the first line it says about itself."""

    path: str
    family: str
    version: str

    def run(
        self,
        arguments: Sequence[str],
        source: str = "",
        *,
        timeout_s: float = COMPILE_TIMEOUT_S,
    ) -> str:
        """Run with ``source`` on standard input; returns what it said. Raises CompileError."""
        with tempfile.TemporaryDirectory(prefix="kernelforge-") as folder:
            try:
                done = subprocess.run(
                    [self.path, *arguments],
                    input=source.encode(),
                    capture_output=True,
                    cwd=folder,
                    env=_environment(),
                    timeout=timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise CompileError(
                    f"The compiler took longer than {timeout_s:.0f} s.",
                    "Simplify templates, unrolling or constant expressions.",
                ) from None
        log = trim_log(done.stderr.decode(errors="replace"))
        if done.returncode:
            raise CompileError(log or f"{self.path} ended with code {done.returncode} and said nothing.")
        return log


def find_compiler() -> Compiler:
    """The first usable compiler. Raises NoCompilerError that says how to get one here."""
    for variable in _OVERRIDES:
        wish = os.environ.get(variable, "").strip()
        if wish:
            path = shutil.which(wish)
            if path is None:
                raise NoCompilerError(
                    f"{variable} is {wish!r}, but there is no such program.",
                    f"Correct {variable} or unset it.",
                )
            return _identify(path)
    for name in CANDIDATES:
        path = shutil.which(name)
        if path is not None:
            return _identify(path)
    looked = ", ".join(CANDIDATES[:3])
    raise NoCompilerError(f"No C++ compiler on PATH (looked for {looked}).", install_hint())


def install_hint() -> str:
    """The command that installs a compiler on this kind of machine."""
    if sys.platform == "darwin":
        command = "xcode-select --install"
    elif os.environ.get("CONDA_PREFIX"):
        command = "conda install -c conda-forge cxx-compiler"
    elif shutil.which("apt-get"):
        command = "sudo apt-get install -y g++"
    elif shutil.which("dnf"):
        command = "sudo dnf install -y gcc-c++"
    elif shutil.which("apk"):
        command = "apk add g++"
    else:
        command = "conda install -c conda-forge cxx-compiler"
    return f"Install one with: {command}  (or point KERNELFORGE_CXX at yours)."


@lru_cache(maxsize=8)
def _identify(path: str) -> Compiler:
    real = str(Path(path).resolve())
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, env=_environment(), timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompilerError(f"{path} does not run: {error}.", install_hint()) from None
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode or not said:
        words = done.stderr.decode(errors="replace").strip()[:200]
        raise NoCompilerError(f"{path} does not work: {words or 'it says nothing'}.", install_hint())
    return Compiler(path, "clang" if "clang" in said.lower() else "gcc", f"{said.splitlines()[0]} ({real})")


def _environment() -> dict[str, str]:
    kept = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
    # LC_ALL=C: messages in English and with plain quotes, whatever the person's locale.
    return {**kept, "LC_ALL": "C"}


def trim_log(text: str) -> str:
    """The compiler's words without its temporary names, cut in the middle when very long."""
    text = text.replace("<stdin>", "kernel.cpp").strip()
    if len(text) <= LOG_CHARS_MAX:
        return text
    half = LOG_CHARS_MAX // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
