"""``kernelforge judge``: prove and time one kernel file for one region."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .. import targets
from ..exc import CompileError, KernelSourceError, ProblemError
from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..targets.cuda_compiler import CHOICE_VARIABLE
from .arguments import add_arch, add_problem, captured, captured_elsewhere, the_region


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("judge", help="judge one kernel file")
    add_problem(parser)
    parser.add_argument("kernel", metavar="KERNEL", help="a source file with // forge: lines")
    parser.add_argument("--region", metavar="HASH", help="which region (default the problem's only one)")
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a value of a tune line (default the first of each); may be repeated",
    )
    add_arch(parser)
    parser.add_argument("--compiler", choices=("nvrtc", "nvcc"), help="of --target cuda (default nvrtc)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when judged, whatever the verdict."""
    source = _read(options.kernel)
    params = tuple(_param(text) for text in options.param)
    if options.compiler:
        os.environ[CHOICE_VARIABLE] = options.compiler
    if options.arch:
        return _only_compile(options, source, params)
    _, workload = captured(options)
    item = the_region(workload, options.region)
    kernel = Kernel(source, item.region.hash, options.target, params)
    from ..judge.api import judge_one

    verdict = judge_one(item.region, kernel, stats=item.stats, seed=options.seed)
    if options.json:
        print(json.dumps(as_json(verdict), indent=2))
    else:
        print(as_text(verdict))
    return 0


def _only_compile(options: argparse.Namespace, source: str, params: tuple[tuple[str, int], ...]) -> int:
    """What a GPU that need not be here would be given. Exit code 1 when it does not compile."""
    region = the_region(captured_elsewhere(options), options.region).region
    try:
        built = targets.get("cuda", options.arch).build(Kernel(source, region.hash, "cuda", params), region)
    except (KernelSourceError, CompileError) as error:
        status = "parse_error" if isinstance(error, KernelSourceError) else "compile_error"
        print(
            json.dumps({"status": status, "evidence": str(error)}, indent=2) if options.json else str(error)
        )
        return 1
    evidence = f"compiled for {options.arch} in {built.compile_s:.2f} s, not run"
    if options.json:
        facts = {"status": "compiled", "evidence": evidence, "resources": dict(built.resources)}
        print(json.dumps(facts, indent=2))
    else:
        uses = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in built.resources.items())
        print(f"{evidence}\n{uses}")
    return 0


def as_json(verdict: Verdict) -> dict[str, Any]:
    timing = verdict.timing
    return {
        "status": verdict.status.value,
        "evidence": verdict.evidence,
        "checks": verdict.check_count,
        "kernel_us": timing.kernel_us if timing else None,
        "stock": timing.stock if timing else None,
        "stock_us": timing.stock_us if timing else None,
        "speedup": timing.speedup if timing else None,
        "low": timing.low if timing else None,
        "high": timing.high if timing else None,
    }


def as_text(verdict: Verdict) -> str:
    lines = [f"{verdict.status.value} after {verdict.check_count} checks"]
    if verdict.timing:
        t = verdict.timing
        lines.append(
            f"{t.kernel_us:.1f} µs against {t.stock_us:.1f} µs of {t.stock}: "
            f"{t.speedup:.2f}× (95 % interval {t.low:.2f}–{t.high:.2f})"
        )
    if verdict.evidence:
        lines.append(verdict.evidence)
    return "\n".join(lines)


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ProblemError(f"{path} is not UTF-8 text.", "Give a source file with // forge: lines.") from None
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror}.", "Give a source file.") from None


def _param(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name or not value.isdecimal():
        raise ProblemError(f"--param {text!r} is not NAME=VALUE.", "For example --param BLOCK=256.")
    return name, int(value)
