"""A run's winners as a plain folder: sources, regions, parameters, verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from .exc import ForgeError
from .history import History, NodeRecord, RegionRecord

FORMAT: Final = 1
_SUFFIX: Final = {"cpu": "cpp", "cuda": "cu"}


def export(history: History, folder: str | Path) -> Path:
    """Write the winners to ``folder`` (made if missing; files of an earlier export are replaced).

    Raises ForgeError when there is no winner or the folder cannot be written.
    """
    winners = history.winners()
    if not winners:
        raise ForgeError("There is nothing to export: no kernel of this run was proven faster than stock.")
    root = Path(folder).expanduser()
    try:
        for name in ("kernels", "regions"):
            (root / name).mkdir(parents=True, exist_ok=True)
        entries = [_write(root, history.target, *winner) for winner in winners]
        manifest = {
            "format": FORMAT,
            **{key: history.started[key] for key in ("run", "title", "target", "device", "level")},
            "step": history.step or None,
            "regions": entries,
        }
        (root / "manifest.json").write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        (root / "README.md").write_text(_readme(history, winners))
    except OSError as error:
        raise ForgeError(
            f"The export to {root} failed: {error}.", "Name a folder you can write to."
        ) from error
    return root


def _write(root: Path, target: str, record: RegionRecord, node: NodeRecord) -> dict[str, Any]:
    source = f"kernels/{record.hash}.{_SUFFIX.get(target, 'txt')}"
    region = f"regions/{record.hash}.txt"
    (root / source).write_text(node.source)
    (root / region).write_text(record.info["text"] + "\n")
    return {
        "hash": record.hash,
        "title": record.info["title"],
        "count": record.info["count"],
        "share": record.info["share"],
        "source": source,
        "region": region,
        "params": node.params,
        "proposer": node.proposer,
        "strategy": node.strategy,
        "idea": node.idea,
        "verdict": node.verdict.as_json() if node.verdict else None,
    }


def _readme(history: History, winners: list[tuple[RegionRecord, NodeRecord]]) -> str:
    rows = []
    for record, node in winners:
        timing = node.verdict.timing if node.verdict else None
        if timing:
            rows.append(
                f"| `{record.hash}` | {record.info['title']} | {record.info['count']} | {timing.stock} "
                f"{timing.stock_us:.1f} µs | {timing.kernel_us:.1f} µs | "
                f"{timing.speedup:.2f}× ({timing.low:.2f}–{timing.high:.2f}) |"
            )
    started = history.started
    first = f"{winners[0][0].hash}.{_SUFFIX.get(history.target, 'txt')}"
    return f"""# Kernels for {started["title"]}

Forged by kernelforge-lab in run `{started["run"]}` for target `{started["target"]}` \
on {started["device"] or "an unnamed device"}.

| region | what | count | fastest stock | kernel | speed-up (95 %) |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

`manifest.json` names for every region its source, the values of its `// forge: tune` lines (`params`) \
and the judge's verdict; `regions/` holds what each kernel computes, as ATen code.

Judge one again on another machine, in a problem that has the region:

```
kernelforge judge PROBLEM.py kernels/{first} --region {winners[0][0].hash} --json
```
"""
