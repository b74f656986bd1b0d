"""How long cutting a large graph into regions takes: Gemma 4 with its 30 layers, narrow, random weights.

    python benchmarks/capture_scale.py [--layers 30] [--out benchmarks/results/cpu/capture_scale.json]

Times ``SplitGraph.split`` (merging equal calls, partition, canonical text) and the hashing of every
region; tracing by Dynamo, which any ``torch.compile`` pays too, is reported beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import torch

from kernelforge_lab.capture.graph import SplitGraph
from kernelforge_lab.capture.trace import GraphBackend, through


def gemma(layers: int) -> torch.nn.Module:
    from transformers import Gemma4ForCausalLM, Gemma4TextConfig

    config = Gemma4TextConfig(
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=layers,
        vocab_size=1000,
        vocab_size_per_layer_input=1000,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
    )
    model: torch.nn.Module = Gemma4ForCausalLM(config).eval()
    return model


def measure(layers: int, repeats: int = 5) -> dict[str, Any]:
    row: dict[str, Any] = {"layers": layers}
    original = SplitGraph.split

    def timed(module: Any, static: Any = (), **options: Any) -> SplitGraph:
        static = list(static)
        copies = [torch.fx.GraphModule(module, _copy(module.graph)) for _ in range(repeats)]
        row["nodes"] = len(module.graph.nodes)
        row["split_s"] = []
        for copy in copies:
            start = time.perf_counter()
            split = original(copy, static, **options)
            hashes = [step.region.hash for step in split.steps if step.region is not None]
            row["split_s"].append(round(time.perf_counter() - start, 4))
        row["regions"], row["distinct"] = len(hashes), len(set(hashes))
        big = {r.hash for r in split.regions.values() if sum(s.numel for s in (*r.inputs, *r.outputs)) > 4096}
        row["distinct_over_4096_elements"] = len(big)
        return original(module, static, **options)

    SplitGraph.split = timed  # type: ignore[method-assign,assignment]
    try:
        model, ids = gemma(layers), torch.randint(0, 900, (1, 128))
        with torch.no_grad():
            expected = model(input_ids=ids, use_cache=False).logits
            compiled = through(model, GraphBackend(lambda split: split.build(lambda _: None)))
            start = time.perf_counter()
            got = compiled(input_ids=ids, use_cache=False).logits
            row["traced_s"] = round(time.perf_counter() - start - sum(row["split_s"]), 1)
        row["bit_equal"] = bool(torch.equal(expected, got))
    finally:
        SplitGraph.split = original  # type: ignore[method-assign]
    return row


def _copy(graph: torch.fx.Graph) -> torch.fx.Graph:
    copy = torch.fx.Graph()
    memo: dict[torch.fx.Node, torch.fx.Node] = {}
    copy.output(copy.graph_copy(graph, memo))
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/cpu/capture_scale.json")
    options = parser.parse_args()
    row = measure(options.layers)
    machine = {"machine": platform.machine(), "threads": torch.get_num_threads()}
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps({"machine": machine, "versions": versions, "rows": [row]}, indent=1) + "\n"
    )
    print(json.dumps(row))


if __name__ == "__main__":
    main()
