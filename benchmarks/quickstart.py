"""The quickstart notebook's model, forged end to end: python benchmarks/quickstart.py

Runs the notebook's own cell that makes the model, then ``kernelforge_lab.forge`` with the notebook's
limits, and writes the run's summary (ceiling, end-to-end A/B, every region) to
benchmarks/results/cpu/quickstart.json.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import nbformat
import torch

import kernelforge_lab
from kernelforge_lab.targets import get

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "cpu" / "quickstart.json"


def main() -> None:
    cells = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4).cells
    (makes_model,) = (c.source for c in cells if "ForCausalLM(config)" in c.source)
    (magic,) = (c.source for c in cells if c.source.startswith("%%forge"))
    limits = {name: float(value) for name, value in re.findall(r"--(minutes|trials) ([\d.]+)", magic)}
    scope: dict[str, object] = {}
    exec(makes_model, scope)  # the cell a person runs
    model, tokens = scope["model"], scope["tokens"]
    start = time.perf_counter()
    with torch.no_grad():
        run = kernelforge_lab.forge(
            model, tokens, minutes=limits["minutes"], trials=int(limits["trials"]), wait=True
        )
    device = get("cpu").device()
    result = {
        "machine": {"cpu": device.name, "threads": device.threads},
        "seconds": round(time.perf_counter() - start, 1),
        **run.summary(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    step = result["step"]
    print(
        f"{step['speedup']:.2f}× ({step['low']:.2f}–{step['high']:.2f}), ceiling {result['ceiling']:.2f}×, "
        f"{result['seconds']:.0f} s"
    )


if __name__ == "__main__":
    main()
