"""``kernelforge library``: the proven kernels, and taking them to another machine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("library", help="list, export or import proven kernels")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=listing, region="", target="")
    what = parser.add_subparsers(metavar="WHAT", help="what to do with them")
    every = what.add_parser("list", help="all proven kernels, fastest first (the default)")
    every.set_defaults(run=listing)
    out = what.add_parser("export", help="write them to a file for another machine")
    out.add_argument("file", metavar="FILE")
    out.set_defaults(run=export)
    come = what.add_parser("import", help="add a file's kernels; each is proven here before it is used")
    come.add_argument("file", metavar="FILE")
    come.set_defaults(run=import_)
    for each in (every, out):
        each.add_argument("--region", default="", help="only of the region with this hash")
        each.add_argument("--target", default="", help="only of this target")
    for each in (every, out, come):
        each.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def listing(options: argparse.Namespace) -> int:
    found = _library().proofs(options.region, options.target)
    if options.json:
        print(json.dumps([asdict(proof) for proof in found], indent=2))
        return 0
    for proof in found:
        gain = f"{proof.speedup:.2f}×"
        print(f"{proof.region}  {proof.target:5} {gain:>8}  {proof.kernel.hash}  {proof.device_name}")
    if not found:
        print("The library is empty: runs fill it with what they prove.")
    return 0


def export(options: argparse.Namespace) -> int:
    from ..library import export_proofs

    found = _library().proofs(options.region, options.target)
    return _say(options, len(found), f"written to {export_proofs(found, options.file)}")


def import_(options: argparse.Namespace) -> int:
    from ..library import import_proofs

    found = import_proofs(_library(), options.file)
    return _say(options, len(found), "imported; each is proven on this machine before it is used")


def _say(options: argparse.Namespace, count: int, what: str) -> int:
    said: dict[str, Any] = {"kernels": count, "file": options.file}
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    print(json.dumps(said) if options.json else f"{kernels} {what}.")
    return 0


def _library() -> Any:
    from ..library import Library
    from ..store import Store

    return Library(Store())
