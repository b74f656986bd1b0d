"""A run's winners as a folder that is a Python package: sources, what is compiled, manifest, loader."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ..exc import ForgeError
from ..history import History, NodeRecord, RegionRecord
from ..judge.certificate import certificate_of
from ..kernels.region import Region
from .readme import readme
from .region_json import region_json
from .units import build_json, unit_json
from .wheel import write_wheel

FORMAT: Final = 2
SUFFIX: Final = {"cpu": "cpp", "cuda": "cu"}
_INIT: Final = """\"\"\"Kernels for {title}, exported by kernelforge-lab; see loader.py and README.md.\"\"\"

from .loader import MANIFEST, Kernel, counts, kernels
from .operators import ops
from .placing import apply, backend, kernelize, place

__all__ = ["MANIFEST", "Kernel", "apply", "backend", "counts", "kernelize", "kernels", "ops", "place"]
"""

Layers = Mapping[str, Sequence[Mapping[str, Any]]]


def export(
    history: History,
    folder: str | Path,
    *,
    wheel: bool = False,
    layers: Layers | None = None,
    arch: str | None = None,
) -> Path:
    """Write the winners to ``folder`` (made if missing; files of an earlier export are replaced).

    With ``wheel`` also as a wheel in that folder. Returns what was asked for: the folder or the wheel.
    ``layers`` names modules whose whole forward is one winner (see ``layers.layer_plans``); ``arch`` is the
    SM that cuda kernels are compiled for (default: the GPU's own). Raises ForgeError when there is no
    winner, a cuda kernel cannot be compiled here, or the folder cannot be written.
    """
    winners = history.winners()
    if not winners:
        raise ForgeError("There is nothing to export: no kernel of this run was proven faster than stock.")
    root = Path(folder).expanduser()
    try:
        for name in ("kernels", "regions", "units"):
            (root / name).mkdir(parents=True, exist_ok=True)
        entries = [_write(root, history, *winner, arch) for winner in winners]
        (root / "manifest.json").write_text(_json(_manifest(history, entries, layers)))
        for name in ("loader.py", "operators.py", "placing.py"):
            (root / name).write_text((files(__package__) / name).read_text())
        title = re.sub(r"[^\w .,()-]", "", str(history.started["title"]))
        (root / "__init__.py").write_text(_INIT.format(title=title))
        (root / "README.md").write_text(readme(history, winners, package_name(history), SUFFIX))
    except OSError as error:
        raise ForgeError(
            f"The export to {root} failed: {error}.", "Name a folder you can write to."
        ) from error
    if wheel:
        summary = f"Kernels for {title}, forged by kernelforge-lab in run {history.started['run']}"
        return write_wheel(root, package_name(history), summary, root)
    return root


def package_name(history: History) -> str:
    """A Python identifier that says what was forged: ``forged_gemma4``."""
    words = re.sub(r"[^a-z0-9]+", "_", str(history.started.get("title", "")).lower()).strip("_")
    name = f"forged_{words}" if words else "forged_kernels"
    assert name.isidentifier() and not keyword.iskeyword(name)
    return name


def _manifest(history: History, entries: list[dict[str, Any]], layers: Layers | None) -> dict[str, Any]:
    started = history.started
    return {
        "format": FORMAT,
        **{key: started[key] for key in ("run", "title", "target", "device", "level")},
        # Operators of two exports in one process must not meet: the run's id is part of their name.
        "namespace": f"{package_name(history)}_{re.sub(r'[^a-z0-9]', '_', str(started['run']).lower())}",
        "build": build_json(history.target),
        "step": history.step or None,
        "layers": {name: list(map(dict, plans)) for name, plans in (layers or {}).items()},
        "regions": entries,
    }


def _write(
    root: Path, history: History, record: RegionRecord, node: NodeRecord, arch: str | None
) -> dict[str, Any]:
    target = history.target
    source = f"kernels/{record.hash}.{SUFFIX.get(target, 'txt')}"
    path = f"regions/{record.hash}.txt"
    (root / source).write_text(node.source)
    (root / path).write_text(record.info["text"] + "\n")
    region = Region.parse(record.info["text"])
    paper = certificate_of(node.verdict)
    return {
        "hash": record.hash,
        "title": record.info["title"],
        "count": record.info["count"],
        "share": record.info["share"],
        "source": source,
        "region": path,
        "params": node.params,
        "proposer": node.proposer,
        "strategy": node.strategy,
        "idea": node.idea,
        "verdict": node.verdict.as_json() if node.verdict else None,
        **region_json(region),
        **unit_json(root, node.kernel(target), region, arch=arch, threads=paper.threads if paper else None),
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
