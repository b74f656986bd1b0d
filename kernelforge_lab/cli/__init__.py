"""``kernelforge``: forge, judge, regions and doctor for scripts and automation."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ..exc import ForgeError
from . import doctor, export, forge, judge, library, regions, report, runs, verify

__all__ = ["main"]

_COMMANDS = (forge, judge, regions, runs, report, verify, export, library, doctor)
# Bad input or a machine that lacks something; argparse uses the same code for bad options.
_EXIT_ERROR = 2
_EXIT_INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="kernelforge",
        description="Find faster kernels for a PyTorch model, proven correct and measured honestly.",
    )
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. Errors go to stderr, with ``--json`` also to stdout as JSON."""
    top = parser()
    options = top.parse_args(argv)
    if options.version:
        from kernelforge_lab import __version__

        print(__version__)
        return 0
    if options.command is None:
        top.print_help()
        return _EXIT_ERROR
    try:
        return int(options.run(options))
    except ForgeError as error:
        if getattr(options, "json", False):
            said = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
            print(json.dumps(said))
        print(f"kernelforge: {error}", file=sys.stderr)
        return _EXIT_ERROR
    except KeyboardInterrupt:
        print("kernelforge: interrupted", file=sys.stderr)
        return _EXIT_INTERRUPTED
