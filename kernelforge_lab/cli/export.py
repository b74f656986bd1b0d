"""``kernelforge export``: a stored run's winners as a package that needs torch alone."""

from __future__ import annotations

import argparse
import json


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "export", help="write the proven kernels of a stored run as a Python package"
    )
    parser.add_argument("id", metavar="RUN", help="its id, the beginning of it, or latest")
    parser.add_argument("folder", metavar="DIR", help="where; made if missing")
    parser.add_argument("--wheel", action="store_true", help="also as a wheel, in DIR")
    parser.add_argument(
        "--arch", metavar="SM", help="compile cuda kernels for this GPU (default: the one here)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..entry import load

    stored = load(None if options.id == "latest" else options.id)
    path = stored.export(options.folder, wheel=options.wheel, arch=options.arch)
    if options.json:
        regions = [record.hash for record, _ in stored.history.winners()]
        print(json.dumps({"run": stored.id, "path": str(path), "regions": regions}))
    else:
        print(f"Exported to {path}")
    return 0
