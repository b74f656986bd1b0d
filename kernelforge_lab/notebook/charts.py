"""Altair charts of a run, for people to keep: roofline, progress and where the time goes.

Each takes a run (anything with ``log.events``) or its list of event JSONs and returns an ``alt.Chart``,
which JupyterLab draws natively and ``chart.save("x.svg")`` writes offline.
"""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from ..kernels.region import Region
from .summary import Summary, gain

# Okabe–Ito, as in js/core/palette.ts: colour and shape by maker.
_MAKERS: Final = {
    "stock": ("#6b747c", "circle"),
    "templates": ("#0072b2", "diamond"),
    "llm": ("#d47f00", "square"),
    "human": ("#a4458a", "triangle-up"),
    "replay": ("#3a8fc2", "cross"),
}
_GREEN: Final = "#00805c"


def roofline(run_or_events: Any) -> alt.LayerChart | alt.FacetChart:
    """Flop per byte against Gflop/s, log–log, every kernel under the measured roofs."""
    summary = _summary(run_or_events)
    dots = pd.DataFrame(
        _dots(summary), columns=["region", "node", "maker", "status", "intensity", "gflops", "kernel_us"]
    )
    roofs = summary.started.get("roofs", {})
    bandwidth, peak = roofs.get("bandwidth_gbps", 1.0), roofs.get("gflops", 1.0)
    low = min([*dots["intensity"], peak / bandwidth]) / 2
    high = max([*dots["intensity"], peak / bandwidth]) * 2
    edge = pd.DataFrame({"intensity": [low, peak / bandwidth, high], "gflops": [low * bandwidth, peak, peak]})
    x = alt.X("intensity:Q", scale=alt.Scale(type="log", nice=False), title="flop per byte")
    y = alt.Y("gflops:Q", scale=alt.Scale(type="log"), title="Gflop/s")
    names = [name for name in _MAKERS if name in set(dots["maker"])]
    points = (
        alt.Chart(dots)
        .mark_point(size=60, filled=False)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "maker:N",
                scale=alt.Scale(domain=names, range=[_MAKERS[n][0] for n in names]),
                title="made by",
            ),
            shape=alt.Shape(
                "maker:N",
                scale=alt.Scale(domain=names, range=[_MAKERS[n][1] for n in names]),
                title="made by",
            ),
            tooltip=["region", "node", "maker", "status", "kernel_us", "gflops"],
        )
    )
    line = alt.Chart(edge).mark_line(color="#1d2125").encode(x=x, y=y)
    title = f"{summary.title}: {bandwidth:.3g} GB/s and {peak:.3g} Gflop/s measured"
    return alt.layer(line, points).properties(title=title, width=520, height=320)


def progress(run_or_events: Any, by: str = "trials") -> alt.LayerChart | alt.FacetChart:
    """Step speed-up so far by ``trials``, ``time`` (s) or ``dollars``; the ceiling and the measured step."""
    fields = {
        "trials": ("trial", "kernels judged"),
        "time": ("at_s", "seconds"),
        "dollars": ("usd", "US dollars"),
    }
    if by not in fields:
        raise ValueError(f"by must be one of {', '.join(fields)}, not {by!r}")
    field, title = fields[by]
    summary = _summary(run_or_events)
    meter = summary.meter
    end = {
        "trials": float(summary.judged),
        "time": meter.get("elapsed_s", 0.0),
        "dollars": meter.get("spent_usd", 0.0),
    }[by]
    rows = [(0.0, 1.0), *((getattr(p, field), p.step) for p in summary.progress)]
    rows.append((max(end, rows[-1][0]), rows[-1][1]))
    line = (
        alt.Chart(pd.DataFrame(rows, columns=["x", "step"]))
        .mark_line(interpolate="step-after", color=_GREEN, strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title=title),
            y=alt.Y("step:Q", scale=alt.Scale(zero=False), title="step speed-up (×)"),
        )
    )
    layers: list[alt.Chart] = [line]
    if summary.ceiling is not None:
        ceiling = pd.DataFrame({"step": [summary.ceiling], "label": [f"ceiling {summary.ceiling:.2f}×"]})
        layers.append(alt.Chart(ceiling).mark_rule(strokeDash=[5, 4]).encode(y="step:Q", tooltip="label"))
    if summary.step:
        s = summary.step
        measured = pd.DataFrame(
            {"x": [rows[-1][0]], "step": [s["speedup"]], "low": [s["low"]], "high": [s["high"]]}
        )
        base = alt.Chart(measured).encode(x="x:Q")
        layers.append(base.mark_rule(color="#b8790b", strokeWidth=2).encode(y="low:Q", y2="high:Q"))
        layers.append(base.mark_point(color="#b8790b", filled=True, size=80).encode(y="step:Q"))
    return alt.layer(*layers).properties(title=summary.title, width=520, height=280)


def costs(run_or_events: Any) -> alt.VConcatChart:
    """Step speed-up so far against US dollars; below, what the last dollars brought: when to stop."""
    summary = _summary(run_or_events)
    marginal = (
        alt.Chart(pd.DataFrame(_marginal(summary), columns=["usd", "gain"]))
        .mark_line(interpolate="step-before", color="#d47f00", strokeWidth=2, point=True)
        .encode(
            x=alt.X("usd:Q", title="US dollars"),
            y=alt.Y("gain:Q", title="% of the step won per dollar"),
        )
        .properties(width=520, height=120, title="marginal gain")
    )
    chart: alt.VConcatChart = alt.vconcat(progress(run_or_events, by="dollars"), marginal)
    return chart


def _marginal(summary: Summary) -> list[tuple[float, float]]:
    """(dollars spent, percent of the original step won per dollar since the gain before it).

    The last point is the money spent without any gain since.
    """
    rows: list[tuple[float, float]] = []
    usd, saved = 0.0, 0.0
    for point in summary.progress:
        now = 1 - 1 / point.step
        if point.usd > usd:
            rows.append((point.usd, 100 * (now - saved) / (point.usd - usd)))
            usd, saved = point.usd, now
        else:
            saved = now  # won without money, by the templates or by hand
    if float(summary.meter.get("spent_usd", 0.0)) > usd:
        rows.append((float(summary.meter["spent_usd"]), 0.0))
    return rows


def breakdown(run_or_events: Any) -> alt.Chart:
    """Share of the step per region and library op: gained, still possible, at the roof."""
    summary = _summary(run_or_events)
    parts = ["gained", "still possible", "at the roof", "library"]
    rows = []
    for region in summary.ranked:
        share = region.info["share"]
        won = 1 - 1 / gain(region)
        most = (
            1 - 1 / region.info["ceiling"] if region.info["eligible"] and region.info["ceiling"] > 1 else 0.0
        )
        possible = max(0.0, most - won)
        name = f"{region.info['title']} ×{region.info['count']}"
        values = (share * won, share * possible, share * (1 - won - possible))
        rows += [(name, part, value) for part, value in zip(parts, values, strict=False)]
    rows += [(f"{v['name']} ×{v['count']}", "library", v["share"]) for v in summary.started.get("vendor", ())]
    frame = pd.DataFrame(rows, columns=["region", "part", "share"])
    frame["order"] = frame["part"].map({part: i for i, part in enumerate(parts)})
    colours = [_GREEN, "#8fcdb5", "#c3cad0", "#e6e9ec"]
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("sum(share):Q", title="share of the step", axis=alt.Axis(format="%")),
            y=alt.Y(
                "region:N", sort=alt.EncodingSortField("share", op="sum", order="descending"), title=None
            ),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=colours), title=None),
            order="order:Q",
            tooltip=["region", "part", alt.Tooltip("share:Q", format=".1%")],
        )
        .properties(title=summary.title, width=520)
    )
    return chart


def _summary(run_or_events: Any) -> Summary:
    log = getattr(run_or_events, "log", None)
    return Summary(log.events if log is not None else run_or_events)


def _dots(summary: Summary) -> list[tuple[Any, ...]]:
    rows = []
    for record in summary.ranked:
        moved, flops = _work(record.info)
        if not moved or not flops:
            continue
        for node_id in record.nodes:
            node = summary.nodes[node_id]
            timing = node.verdict.timing if node.verdict else None
            if timing and timing.kernel_us > 0:
                rate = flops / timing.kernel_us / 1e3
                cells = (record.info["title"], node.id, node.proposer, node.status, flops / moved, rate)
                rows.append((*cells, timing.kernel_us))
    return rows


def _work(info: dict[str, Any]) -> tuple[float, float]:
    """Bytes and flops of one call: capture's numbers, else bytes by spec and one flop per element and op."""
    if "bytes" in info and "flops" in info:
        return info["bytes"], info["flops"]
    region = Region.parse(info["text"])
    flops = 0
    for op in region.ops:
        sizes = [spec.numel for spec in op.outs if spec is not None]
        sizes += [region.specs[name].numel for name in op.refs() if name in region.specs]
        flops += 0 if op.short_name.strip("_") in _FREE else max(sizes, default=0)
    return region.bytes_floor, flops


# As in js/core/roofline.ts.
_FREE: Final = frozenset(
    "view unsafe_view t transpose permute unsqueeze squeeze expand slice select alias to_copy clone "
    "cat stack where copy full zeros ones arange embedding".split()
)
