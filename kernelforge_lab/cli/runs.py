"""``kernelforge runs``: what the store keeps, also of yesterday; and cleaning it up."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..exc import ProblemError

if TYPE_CHECKING:
    from ..store import Store, StoredRun


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("runs", help="list, show or prune the stored runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=listing)
    what = parser.add_subparsers(metavar="WHAT", help="what to do with them")
    every = what.add_parser("list", help="all runs, newest first (the default)")
    every.set_defaults(run=listing)
    one = what.add_parser("show", help="what one run found")
    one.add_argument("id", metavar="RUN", nargs="?", help="its id or the beginning of it (default newest)")
    one.set_defaults(run=show)
    prune = what.add_parser("prune", help="delete old runs; the kernels they proved stay in the library")
    prune.add_argument("ids", metavar="RUN", nargs="*", help="these runs, by their whole ids")
    prune.add_argument("--keep", metavar="N", type=int, help="keep the newest N, delete what is beyond")
    prune.add_argument("--older-than", metavar="DAYS", type=float, help="delete those of before so many days")
    prune.add_argument("--dry-run", action="store_true", help="only say which")
    prune.set_defaults(run=prune_runs)
    for each in (every, one, prune):
        each.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def listing(options: argparse.Namespace) -> int:
    with _store() as store:
        found = store.runs()
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
        return 0
    for row in found:
        print(_line(row))
    if not found:
        print("There is no run in the store yet.")
    return 0


def show(options: argparse.Namespace) -> int:
    from ..entry import load
    from .forge import as_text

    run = load(options.id)
    print(json.dumps(run.summary(), indent=2) if options.json else f"{run!r}\n{as_text(run)}")
    return 0


def prune_runs(options: argparse.Namespace) -> int:
    from ..store.retention import prunable

    if options.keep is not None and options.keep < 0:
        raise ProblemError("--keep must be at least 0.")
    with _store() as store:
        if options.ids:
            found = _named(store.runs(), options.ids)
        elif options.keep is None and options.older_than is None:
            raise ProblemError("Say which runs: RUN…, --keep N or --older-than DAYS.")
        else:
            found = prunable(store.runs(), keep=options.keep, older_than_days=options.older_than)
        names = [run.id for run in found]
        if names and not options.dry_run:
            names = store.delete_all(names)
            store.compact()
    if options.json:
        print(json.dumps({"deleted" if not options.dry_run else "would_delete": names}))
        return 0
    for run in found:
        print(_line(run))
    done = "would be deleted" if options.dry_run else "deleted"
    print(f"{len(names)} run{'' if len(names) == 1 else 's'} {done}.")
    return 0


def _named(runs: Sequence[StoredRun], wanted: Sequence[str]) -> list[StoredRun]:
    known = {run.id: run for run in runs}
    for name in wanted:
        if name not in known:
            raise ProblemError(f"There is no run {name!r}.", "kernelforge runs lists them; give whole ids.")
        if known[name].is_live:
            raise ProblemError(f"Run {name} is at work.", "Stop it first.")
    return [known[name] for name in dict.fromkeys(wanted)]


def _line(row: StoredRun) -> str:
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.started_at))
    return f"{row.id}  {started}  {row.state:9} {row.target:5} {row.title}"


@contextmanager
def _store() -> Iterator[Store]:
    from ..store import Store

    store = Store()
    try:
        yield store
    finally:
        store.close()
