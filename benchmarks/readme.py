"""Write the README's table from the raw results: python benchmarks/readme.py [--check]."""

from __future__ import annotations

import json
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


def _us(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


PARTS = {"quickstart": quickstart, "regions": regions}


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
