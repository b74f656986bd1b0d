"""Write the README's table from the raw results: python benchmarks/readme.py [--check]."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "cpu"


def quickstart() -> str:
    data = json.loads((RESULTS / "quickstart.json").read_text())
    step = data["step"]
    return (
        "The quickstart: a bf16 Gemma 4 at laptop size (`transformers`, random weights, 128 tokens) on two\n"
        f"cores, end to end against {step['stock']}, outputs equal in bound: **{step['speedup']:.2f}×** "
        f"({step['low']:.2f}–{step['high']:.2f}) of a ceiling of\n{data['ceiling']:.2f}×, found in "
        f"{data['seconds']:.0f} s (`python benchmarks/quickstart.py`)."
    )


def regions() -> str:
    data = json.loads((RESULTS / "regions.json").read_text())
    lines = [
        "| region | eager µs | torch.compile µs | forged µs | against the faster of both |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {row['name']} | {_us(row['eager_us'])} | {_us(row['compile_us'])} | {_us(row['kernel_us'])} "
        f"| **{row['speedup']:.2f}×** ({row['low']:.2f}–{row['high']:.2f}) |"
        for row in data["rows"]
    ]
    machine = data["machine"]
    lines.append("")
    lines.append(
        f"Geometric mean **{data['geomean']:.2f}×**. {machine['cpu']}, {machine['threads']} threads, "
        f"torch {data['versions']['torch']}; times on this shared machine are only good for the ratios."
    )
    return "\n".join(lines)


def h200_regions() -> str:
    data = json.loads((RESULTS.parent / "h200" / "regions.json").read_text())
    rows = data["rows"]
    heads = "region, bf16|floor µs|eager|torch.compile|library|forged|of floor|over eager|over best".split(
        "|"
    )
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * 7 + " --- |"]
    keys = ("floor_us", "eager_us", "compile_us", "library_us", "kernel_us")
    for row in rows:
        times = " | ".join("–" if row[key] is None else f"{row[key]:.1f}" for key in keys)
        part = "–" if row["of_floor"] is None else f"{row['of_floor']:.0%}"
        won = row["kernel_us"] is not None
        best = f"**{row['speedup']:.2f}×** ({row['low']:.2f}–{row['high']:.2f})" if won else "stock stays"
        lines.append(f"| {row['name']} | {times} | {part} | {row['over_eager']:.1f}× | {best} |")
    torch_only = [row["stock_us"] / row["kernel_us"] if row["kernel_us"] else 1.0 for row in rows]
    geomean = math.exp(sum(map(math.log, torch_only)) / len(rows))
    judged, seconds = sum(row["judged"] for row in rows), sum(row["search_s"] for row in rows)
    over = (
        f"Geometric mean **{data['geomean']:.2f}×** over the best of eager, torch.compile (max-autotune) and"
    )
    pace, each_s, control = judged / seconds * 60, seconds / len(rows), f"A/A {data['aa']['ratio']:.3f}"
    where = f"{data['device']}, torch {data['versions']['torch']}, CUDA {data['versions']['cuda']}"
    lines += [
        "",
        f"{over} a\nlibrary, {geomean:.2f}× over the best of PyTorch alone. {where};",
        f"the floor is bytes over a measured triad of {data['triad_tbs']:.2f} TB/s.",
        f"{each_s:.0f} s of search a row, {judged} kernels judged, {pace:.0f} a minute; {control}.",
    ]
    return "\n".join(lines)


def _us(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


PARTS = {"quickstart": quickstart, "regions": regions, "h200_regions": h200_regions}


def rendered(text: str) -> str:
    """The text with what stands between ``<!-- NAME -->`` and ``<!-- /NAME -->`` made anew."""
    for name, write in PARTS.items():
        head, rest = text.split(f"<!-- {name} -->", 1)
        _, tail = rest.split(f"<!-- /{name} -->", 1)
        text = f"{head}<!-- {name} -->\n{write()}\n<!-- /{name} -->{tail}"
    return text


def main() -> int:
    text = README.read_text()
    wanted = rendered(text)
    if "--check" in sys.argv:
        return 0 if text == wanted else 1
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
