"""``kernelforge report``: the report of a run, also of yesterday."""

from __future__ import annotations

import argparse


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("report", help="write the report of a stored run")
    parser.add_argument("id", metavar="RUN", nargs="?", help="its id or the beginning of it (default newest)")
    parser.add_argument(
        "--to",
        metavar="FILE",
        default="kernelforge-report.html",
        help="where; .html to read, .ipynb to judge its kernels again, .md to paste",
    )
    parser.set_defaults(run=report)


def report(options: argparse.Namespace) -> int:
    from ..entry import load

    print(f"Report written to {load(options.id).report(options.to)}")
    return 0
