"""Judge the kernels of a report again, on the machine where the report is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..judge.api import judge_one
from ..kernels.kernel import Kernel
from ..kernels.region import Region

if TYPE_CHECKING:
    import pandas as pd


def verify(kernels: Sequence[Mapping[str, Any]], *, seed: int = 0) -> pd.DataFrame:
    """One row per kernel: what the report claims and what the judge says here. Times in µs.

    ``kernels`` have ``region`` (its text), ``source``, ``params``, ``target`` and ``speedup`` as reported.
    Inputs are drawn anew from standard normals: the model's own are not part of a report.
    """
    import pandas as pd

    rows = []
    for entry in kernels:
        region = Region.parse(entry["region"])
        params = tuple(sorted(entry["params"].items()))
        verdict = judge_one(region, Kernel(entry["source"], region.hash, entry["target"], params), seed=seed)
        t = verdict.timing
        rows.append(
            {
                "region": region.title,
                "reported": entry["speedup"],
                "here": t.speedup if t else None,
                "low": t.low if t else None,
                "high": t.high if t else None,
                "status": verdict.status.value,
                "kernel_us": t.kernel_us if t else None,
                "stock": t.stock if t else None,
                "stock_us": t.stock_us if t else None,
                "evidence": verdict.evidence,
            }
        )
    return pd.DataFrame(rows)
