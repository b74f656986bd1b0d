"""Regions that models spend their time in, forged on the cpu: what the README's table is made of.

    python benchmarks/cpu_regions.py [NAME …]     # writes benchmarks/results/cpu/regions.json

Every row is one ``kernelforge_lab.forge`` run from the templates alone. Its speed-up is the one the
product reports: the winner re-measured in a fresh process with new inputs, paired block by block with
the faster of eager and torch.compile, median and 95 % interval. Where nothing is faster, stock stays
installed and the row says 1.0.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import kernelforge_lab
from kernelforge_lab.targets import get

RESULTS = Path(__file__).parent / "results" / "cpu" / "regions.json"
TRIALS = 24


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As transformers writes it for Gemma: float32 inside, the power for the root."""
    wide = x.float()
    scaled = wide * torch.pow(wide.pow(2).mean(-1, keepdim=True) + 1e-6, -0.5)
    return (scaled * weight.float()).type_as(x)


def add_rms_norm(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = x + y
    return rms_norm(hidden, weight), hidden


def gelu_up(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.gelu(gate, approximate="tanh") * up


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def group_norm_silu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.silu(F.group_norm(x, 32, weight, bias))


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cos + turned * sin


# name -> (function, shapes of its inputs)
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "add+RMSNorm 512×2304": (add_rms_norm, ((512, 2304), (512, 2304), (2304,))),
    "GELU(tanh)·up 512×9216": (gelu_up, ((512, 9216), (512, 9216))),
    "softmax 1024×2048": (softmax, ((1024, 2048),)),
    "layer_norm 512×2304": (layer_norm, ((512, 2304), (2304,), (2304,))),
    "group_norm+SiLU 1×256×64×64": (group_norm_silu, ((1, 256, 64, 64), (256,), (256,))),
    "RoPE 1×8×512×256": (rope, ((1, 8, 512, 256), (1, 1, 512, 256), (1, 1, 512, 256))),
}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def rows(wanted: list[str]) -> Iterator[dict[str, Any]]:
    for short, dtype in DTYPES.items():
        for name, (function, shapes) in CASES.items():
            title = f"{name} {short}"
            if wanted and not any(w in title for w in wanted):
                continue
            torch.manual_seed(0)
            inputs = [torch.randn(shape).to(dtype) for shape in shapes]
            with torch.no_grad():
                run = kernelforge_lab.forge(
                    function, *inputs, trials=TRIALS, minutes=4, seed=0, measure=False, wait=True, title=title
                )
            yield row(title, run)


def row(title: str, run: kernelforge_lab.Run) -> dict[str, Any]:
    (region,) = run.summary()["regions"]
    judged = [node.verdict for node in run.history.nodes.values() if node.verdict is not None]
    stocks = next((verdict.stocks_us for verdict in judged if verdict.stocks_us), {})
    best = run.best(region["hash"])
    installed = region["speedup"] is not None and best is not None
    if best is not None and best.verdict is not None:
        stocks = best.verdict.stocks_us or stocks
    return {
        "name": title,
        "region": region["hash"],
        "eager_us": stocks.get("eager"),
        "compile_us": stocks.get("compiled"),
        "stock": region["stock"],
        "stock_us": region["stock_us"],
        "kernel_us": region["kernel_us"],
        "speedup": region["speedup"] if installed else 1.0,
        "low": region["low"] if installed else 1.0,
        "high": region["high"] if installed else 1.0,
        "strategy": best.strategy if best is not None else "",
        "params": dict(best.params) if best is not None else {},
        "trials": len(run.history.nodes),
    }


def geomean(found: list[dict[str, Any]]) -> float:
    return math.exp(sum(math.log(r["speedup"]) for r in found) / len(found))


def main() -> None:
    found = []
    for one in rows(sys.argv[1:]):
        found.append(one)
        print(
            f"{one['name']:34} eager {one['eager_us'] or 0:8.0f}  compile {one['compile_us'] or 0:8.0f}  "
            f"kernel {one['kernel_us'] or 0:8.0f} µs  "
            f"{one['speedup']:.2f}× ({one['low']:.2f}–{one['high']:.2f}) {one['strategy']} {one['params']}",
            flush=True,
        )
    print(f"geomean {geomean(found):.2f}× over the better of eager and torch.compile")
    if not sys.argv[1:]:
        device = get("cpu").device()
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "machine": {"cpu": device.name, "threads": device.threads, "system": platform.platform()},
            "versions": {
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in ("torch", "kernelforge-lab")},
            },
            "geomean": geomean(found),
            "rows": found,
        }
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {os.path.relpath(RESULTS)}")


if __name__ == "__main__":
    main()
