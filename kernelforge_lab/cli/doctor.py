"""``kernelforge doctor``: what is here, what is missing, what to do."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Final

from ..exc import ForgeError
from . import doctor_cuda
from .finding import Finding

_SIGNS: Final = {"ok": "✓", "optional": "·", "missing": "✗"}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("doctor", help="say what is here, what is missing and what to do")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when the cpu target works, 1 when something it needs is missing."""
    findings = list(examine())
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{_SIGNS[finding.state]} {finding.name:{width}}  {finding.detail}")
            if finding.todo:
                print(f"  {'':{width}}  → {finding.todo}")
    return int(any(finding.state == "missing" for finding in findings))


def examine() -> Iterator[Finding]:
    """Every finding, cheapest first."""
    yield Finding("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield _package("torch", "missing", "pip install torch")
    yield _compiler()
    yield _cache()
    yield _jupyter()
    yield _package(
        "transformers", "optional", "pip install 'kernelforge-lab[demo]' for the example notebooks"
    )
    yield from doctor_cuda.judge(doctor_cuda.collect())
    yield _llm()


def _package(name: str, otherwise: str, todo: str) -> Finding:
    try:
        return Finding(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, otherwise, "not installed", todo)


def _compiler() -> Finding:
    """Finds a compiler, and lets it prove itself on a kernel with OpenMP."""
    from ..targets.toolchain import find_compiler

    try:
        compiler = find_compiler()
        _try_kernel()
    except ForgeError as error:
        return Finding("cpu target", "missing", error.message, error.hint)
    from .. import targets

    return Finding("cpu target", "ok", f"{targets.get('cpu').device().name}, {compiler.version}")


def _try_kernel() -> None:
    from .. import targets
    from ..exc import CompileError
    from ..kernels.kernel import Kernel
    from ..kernels.region import Region

    region = Region.parse("region(in0: f32[64]) {\n  t0 = aten.neg.default(in0) : f32[64]\n  return t0\n}")
    source = (
        "// forge: target cpu\n// forge: launch negate args=(in0, out0)\n"
        'extern "C" void negate(const float* x, float* y) {\n'
        "#pragma omp parallel for num_threads(THREADS_MAX)\n"
        "  for (int i = 0; i < NUMEL; i++) y[i] = -x[i];\n}\n"
    )
    target = targets.get("cpu")
    launcher = target.load(target.build(Kernel(source, region.hash, "cpu"), region))
    x, y = (ctypes.c_float * 64)(*range(64)), (ctypes.c_float * 64)()
    launcher.bind_names(("in0", "out0"))(ctypes.addressof(x), ctypes.addressof(y))
    if list(y) != [-value for value in x]:
        raise CompileError(
            "A trivial kernel computes something else.", "Try another compiler (KERNELFORGE_CXX)."
        )


def _cache() -> Finding:
    from ..targets.cache import cache_root

    root = cache_root()
    files = [path for path in root.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return Finding("kernel cache", "ok", f"{root} ({len(files)} files, {size / 2**20:.0f} MiB)")


def _jupyter() -> Finding:
    try:
        lab = metadata.version("jupyterlab")
    except metadata.PackageNotFoundError:
        return Finding(
            "jupyterlab", "optional", "not installed", "pip install jupyterlab to use the notebook face"
        )
    from jupyter_core.paths import jupyter_path

    places = [Path(folder) / "kernelforge-lab" for folder in jupyter_path("labextensions")]
    if any((place / "package.json").is_file() for place in places):
        return Finding("jupyterlab", "ok", f"{lab}, extension installed")
    return Finding(
        "jupyterlab", "optional", f"{lab}, extension not found", "pip install kernelforge-lab again here"
    )


def _llm() -> Finding:
    if os.environ.get("OPENAI_API_KEY"):
        return Finding("llm", "ok", "OPENAI_API_KEY is set")
    return Finding(
        "llm",
        "optional",
        "no API key; the built-in templates need none",
        "set OPENAI_API_KEY to let an LLM propose",
    )
