"""Runs side by side: across models, devices and proposers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .entry import load
from .exc import ProblemError
from .history import History
from .run import Run

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final = (
    "run title device target level proposers state kernels minutes usd ceiling regions faster "
    "stock stock_ms forged_ms speedup low high installed"
).split()
_REGION_COLUMNS: Final = (
    "run title device region ops share count stock stock_us kernel_us speedup low high".split()
)


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` gives: ``table`` (per run), ``regions`` (per region and run) and ``chart``."""

    histories: tuple[History, ...]

    @property
    def table(self) -> pd.DataFrame:
        """Times in ms, ``speedup`` of the whole step with its 95 % interval (empty: not measured)."""
        import pandas as pd

        return pd.DataFrame([_row(history) for history in self.histories], columns=_COLUMNS)

    @property
    def regions(self) -> pd.DataFrame:
        """Equal regions of several runs are neighbours; times in µs, ``speedup`` of re-measured winners."""
        import pandas as pd

        rows = []
        for history in self.histories:
            regions = history.table()
            regions = regions.assign(run=history.started["run"], title=history.started["title"])
            rows += regions.assign(device=history.started["device"]).to_dict("records")
        frame = pd.DataFrame(rows, columns=_REGION_COLUMNS)
        return frame.sort_values(["region", "speedup"], ascending=[True, False], ignore_index=True)

    @property
    def chart(self) -> Any:
        """Altair chart: every run's speed-up of the step with its interval, and its ceiling."""
        import altair as alt

        rows = self.table.to_dict("records")
        for row in rows:
            row["label"] = f"{row['title']} · {row['run']}"
        values: Any = [{key: _plain(value) for key, value in row.items()} for row in rows]
        data: Any = alt.InlineData(values=values)
        base = alt.Chart(data).encode(y=alt.Y("label:N", title=None, sort=None))
        who = alt.Color("device:N", title="device")
        measured = base.transform_filter("isValid(datum.speedup)")
        tooltip = [f"{name}:N" for name in ("title", "run", "device", "proposers", "stock", "state")]
        tooltip += [
            f"{name}:Q" for name in ("speedup", "low", "high", "ceiling", "kernels", "minutes", "usd")
        ]
        bars = measured.mark_bar(height=12).encode(
            x=alt.X("speedup:Q", title="speed-up of the step"), color=who, tooltip=tooltip
        )
        intervals = measured.mark_rule().encode(x="low:Q", x2="high:Q")
        ceilings = base.mark_tick(thickness=2, color="grey").encode(x="ceiling:Q", tooltip=tooltip)
        return (bars + intervals + ceilings).properties(
            width=420, title="Measured speed-up (bar, 95 % interval) and ceiling (tick)"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """In a notebook: the chart, then the table below it."""
        shown = self.chart._repr_mimebundle_(include, exclude)
        bundle, metadata = shown if isinstance(shown, tuple) else (shown, {})
        return {**bundle, "text/plain": str(self)}, metadata

    def __str__(self) -> str:
        return self.table.to_string(index=False)


def compare(*runs: Run | str) -> Comparison:
    """Runs (or their ids in the store) side by side.

    >>> kernelforge_lab.compare(run, "261201-0912").table  # doctest: +SKIP

    Raises ProblemError without runs, for one that captured nothing and for an unknown id.
    """
    if not runs:
        raise ProblemError("compare: there are no runs to compare.", "Give runs or their ids.")
    histories = []
    for run in runs:
        if not isinstance(run, Run | str):
            raise ProblemError(f"compare: a {type(run).__name__} is no run.", "Give runs or their ids.")
        found = load(run) if isinstance(run, str) else run
        history = found.history
        if not history.started:
            raise ProblemError(f"compare: run {found.id} has captured nothing.")
        histories.append(history)
    return Comparison(tuple(histories))


def _row(history: History) -> dict[str, Any]:
    started, step, meter = history.started, history.step, history.meter
    row = {key: started[key] for key in ("run", "title", "device", "target", "level", "ceiling")}
    judged = [node for node in history.nodes.values() if node.verdict and node.status != "stock"]
    return row | {
        "proposers": ", ".join(started["proposers"]),
        "state": history.state,
        "kernels": len(judged),
        "minutes": round(meter.get("elapsed_s", 0.0) / 60, 2),
        "usd": meter.get("spent_usd", 0.0),
        "regions": len(history.regions),
        "faster": len(history.winners()),
        **{key: step.get(key) for key in ("stock", "stock_ms", "forged_ms", "speedup", "low", "high")},
        "installed": bool(step.get("installed", False)),
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and value != value else value
