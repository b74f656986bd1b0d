"""``kernelforge runs`` and ``kernelforge report``: what the store keeps, also of yesterday."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listing = commands.add_parser("runs", help="list the stored runs, newest first")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=runs)
    parser = commands.add_parser("report", help="write the report of a stored run")
    parser.add_argument("id", metavar="RUN", nargs="?", help="its id or the beginning of it (default newest)")
    parser.add_argument(
        "--to",
        metavar="FILE",
        default="kernelforge-report.html",
        help="where; .html to read, .ipynb to judge its kernels again, .md to paste",
    )
    parser.set_defaults(run=report)


def runs(options: argparse.Namespace) -> int:
    from ..store import Store

    store = Store()
    try:
        found = store.runs()
    finally:
        store.close()
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
        return 0
    for row in found:
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.started_at))
        print(f"{row.id}  {started}  {row.state:9} {row.target:5} {row.title}")
    if not found:
        print("There is no run in the store yet.")
    return 0


def report(options: argparse.Namespace) -> int:
    from ..entry import load

    print(f"Report written to {load(options.id).report(options.to)}")
    return 0
