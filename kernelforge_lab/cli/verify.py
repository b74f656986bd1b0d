"""``kernelforge verify``: judge a stored run's winners again, on this machine."""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

from .. import targets
from ..events import NodeJudged, RegionState
from ..exc import ForgeError, StoreError
from ..history import History, NodeRecord, RegionRecord
from ..judge.certificate import Certificate, certificate_of
from ..judge.job import Job
from ..judge.pool import JudgePool
from ..judge.verdict import Status, Verdict


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("verify", help="judge the winners of a stored run again, on this machine")
    parser.add_argument("id", metavar="RUN", nargs="?", help="its id or the beginning of it (default newest)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exit code 0 when every winner holds here, 1 when one does not or there is none."""
    from ..entry import load

    past = load(options.id)
    history = past.history
    rows = [verify(history, record, node) for record, node in history.winners()]
    kept = _keep(past.id, rows)
    if options.json:
        print(
            json.dumps(
                {"run": past.id, "kept": not kept, "regions": [_as_json(*row) for row in rows]}, indent=2
            )
        )
    else:
        print("\n".join(_as_text(*row) for row in rows) or f"Run {past.id} has no winner to verify.")
        if kept:
            print(kept)
    return 0 if rows and all(verdict.status is Status.FASTER for _, _, _, verdict in rows) else 1


def verify(
    history: History, record: RegionRecord, node: NodeRecord
) -> tuple[RegionRecord, NodeRecord, str, Verdict]:
    """(region, node, why its certificate did not hold here, the new verdict): proven on new seeds."""
    region, kernel = history.region(record), node.kernel(history.target)
    paper = certificate_of(node.verdict)
    threads = paper.threads if paper and history.target == "cpu" else None
    stale = _objection(history, record, node, paper)
    seed = random.SystemRandom().randrange(1 << 30)
    with JudgePool(history.target, threads=threads) as pool:
        job = Job(region, kernel, paper.stats if paper else (), seed=seed, finalist=True)
        return record, node, stale, pool.submit(job).result()


def _objection(history: History, record: RegionRecord, node: NodeRecord, paper: Certificate | None) -> str:
    if paper is None:
        return "it has none"
    region, kernel = history.region(record), node.kernel(history.target)
    try:
        target = targets.get(history.target, threads=paper.threads)
        return paper.objection(region, kernel, target.build(kernel, region), target.device())
    except ForgeError as error:
        return str(error)


def _keep(run_id: str, rows: list[tuple[RegionRecord, NodeRecord, str, Verdict]]) -> str:
    """Write the new verdicts (with their certificates) to the run; why that failed, or ""."""
    from ..store import Store

    try:
        store = Store()
        try:
            store.claim(run_id)
            last = len(store.events(run_id))
            for record, node, _, verdict in rows:
                timing = verdict.timing if verdict.status is Status.FASTER else None
                state = RegionState(
                    record.hash,
                    "done",
                    record.reason
                    if timing
                    else f"verified again: {verdict.status.value}, {verdict.evidence}",
                    node.id if timing else None,
                    timing.speedup if timing else None,
                    timing.low if timing else None,
                    timing.high if timing else None,
                )
                for event in (NodeJudged(node.id, record.hash, verdict.as_json(), node.reward or 0.0), state):
                    last += 1
                    store.append(run_id, {**event.as_json(), "seq": last, "at_s": time.time()})
        finally:
            store.close()
    except StoreError as error:
        return f"The new verdicts were not saved: {error}"
    return ""


def _as_json(record: RegionRecord, node: NodeRecord, stale: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "region": record.hash,
        "node": node.id,
        "certificate": stale or "held",
        "before": node.verdict.timing.speedup if node.verdict and node.verdict.timing else None,
        "verdict": verdict.as_json(),
    }


def _as_text(record: RegionRecord, node: NodeRecord, stale: str, verdict: Verdict) -> str:
    before = node.verdict.timing if node.verdict else None
    was = f", was {before.speedup:.2f}×" if before else ""
    now = verdict.status.value
    if verdict.timing:
        t = verdict.timing
        now += f" {t.speedup:.2f}× ({t.low:.2f}–{t.high:.2f}){was}, {verdict.check_count} checks"
    lines = [f"{record.hash}  {record.info['title']}  node {node.id}: {now}"]
    if stale:
        lines.append(f"  its certificate did not hold here: {stale}")
    if verdict.evidence:
        lines.append(f"  {verdict.evidence}")
    return "\n".join(lines)
