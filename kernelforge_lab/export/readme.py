"""The README of an exported folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..history import History, NodeRecord, RegionRecord


def readme(
    history: History,
    winners: Sequence[tuple[RegionRecord, NodeRecord]],
    package: str,
    suffix: Mapping[str, str],
) -> str:
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
    first = winners[0][0].hash
    needs = "a C++ compiler" if history.target == "cpu" else "a GPU that the cubins in `units/` are for"
    return f"""# Kernels for {started["title"]}

Forged by kernelforge-lab in run `{started["run"]}` for target `{started["target"]}` \
on {started["device"] or "an unnamed device"}.

| region | what | count | fastest stock | kernel | speed-up (95 %) |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

## Use

This folder is a Python package that needs torch and {needs}. Name the folder, or install its wheel, as
`{package}`:

```python
import {package} as forged

fast = forged.apply(model)  # torch.compile(model) with these kernels in place
```

`forged.kernels["{first}"](…)` calls one kernel, `forged.ops["{first}"]` is the same as an operator that
works under `torch.compile(fullgraph=True)`, `torch.export` and autograd. What does not fit a kernel (shape,
layout, dtype, device) runs PyTorch's own operators; `forged.counts()` says how often and why. The first call
of each kernel is compared with PyTorch, and a kernel that disagrees on this machine stays off.

`manifest.json` names for every region its source, the values of its `// forge: tune` lines (`params`), the
judge's verdict and the ATen calls it replaces; `regions/` holds those as text, `units/` what is compiled.

Judge one again on another machine, with kernelforge-lab and a problem that has the region:

```
kernelforge judge PROBLEM.py kernels/{first}.{suffix.get(history.target, "txt")} --region {first} --json
```
"""
