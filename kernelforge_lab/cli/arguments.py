"""Arguments several commands share, and what they mean."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import TextIO

from ..capture import Workload, WorkloadRegion, capture
from ..exc import ProblemError
from ..options import LEVELS, TARGETS
from ..problem import Problem, load_problem


def add_problem(parser: argparse.ArgumentParser) -> None:
    """PROBLEM.py, ``--target``, ``--level``, ``--seed`` and ``--json``."""
    parser.add_argument(
        "problem", metavar="PROBLEM.py", help="defines Model, get_inputs() and get_init_inputs()"
    )
    parser.add_argument("--target", choices=TARGETS, default="cpu", help="what kernels are for (default cpu)")
    parser.add_argument(
        "--level",
        choices=LEVELS,
        default="region",
        help="fusible subgraphs, or each ATen op alone (default region)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of model, inputs and search (default 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def own_output() -> contextlib.redirect_stdout[TextIO]:
    """While the problem's code runs: what it prints goes to stderr, stdout keeps the result alone."""
    return contextlib.redirect_stdout(sys.stderr)


def captured(options: argparse.Namespace) -> tuple[Problem, Workload]:
    """Load the problem and capture one call. Raises ProblemError or CaptureError."""
    with own_output():
        problem = load_problem(options.problem, seed=options.seed).on(options.target)
        return problem, capture(problem.model, problem.args, target=options.target, level=options.level)


def add_arch(parser: argparse.ArgumentParser) -> None:
    """``--arch``: compile for a GPU that need not be here."""
    parser.add_argument(
        "--arch", metavar="SM", help="only compile, for this GPU (sm_90): needs none; --target cuda"
    )


def captured_elsewhere(options: argparse.Namespace) -> Workload:
    """The workload for ``--arch``: captured on the CPU. Raises ProblemError when the target is another."""
    if options.target != "cuda":
        raise ProblemError("--arch is for --target cuda.", "The cpu target builds for this machine.")
    with own_output():
        problem = load_problem(options.problem, seed=options.seed)
        return capture(problem.model, problem.args, target="cpu", level=options.level)


def the_region(workload: Workload, wish: str | None) -> WorkloadRegion:
    """The region whose hash starts with ``wish``, or the only one. Raises ProblemError that lists them."""
    listed = "; ".join(f"{item.region.hash} {item.region.title}" for item in workload.regions) or "none"
    if wish:
        found = [item for item in workload.regions if item.region.hash.startswith(wish.lower())]
    else:
        found = [item for item in workload.regions if item.eligible] or list(workload.regions)
    if len(found) == 1:
        return found[0]
    if wish:
        many = "no region" if not found else f"{len(found)} regions"
        raise ProblemError(f"{many} with a hash that starts with {wish!r}.", f"There are: {listed}.")
    if not found:
        reasons = "; ".join(workload.uncaptured) or "its call has no operator that a kernel could replace"
        raise ProblemError("The problem has no region.", f"Because: {reasons}.")
    raise ProblemError(f"The problem has {len(found)} regions.", f"Choose one with --region: {listed}.")
