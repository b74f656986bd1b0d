"""The Markdown report: what was found, against what, and how to have it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..history import NodeRecord, RegionRecord
from .summary import Summary, gain

Json = dict[str, Any]


def markdown(events: Sequence[Json]) -> str:
    """A run as Markdown with its regions, winners and their sources."""
    summary = Summary(events)
    parts = [*head(summary), "## Regions", "", *_regions(summary), ""]
    for region, node in won(summary):
        interval = _speedup(region)
        parts += [f"## {text(region.info['title'])}: {interval} by {text(node.proposer)}", ""]
        parts += [*facts(region, node), "", *fenced(node.source, "cpp"), ""]
    if summary.started:
        s = summary.started
        parts += ["## How", "", f"- run `{code(s['run'])}`, seed {s['seed']}, level {text(s['level'])}"]
        parts += [f"- {text(s['device'])}, target {text(s['target'])}"]
        parts += [f"- proposers: {text(', '.join(s['proposers']))}"]
        parts += [f"- {summary.judged} kernels judged, ${summary.meter.get('spent_usd', 0.0):.4f} spent"]
    return "\n".join(parts) + "\n"


def head(summary: Summary) -> Iterable[str]:
    """Title and the answer: how good, against what, equal or not."""
    yield f"# {text(summary.title)}"
    yield ""
    yield f"**{text(summary.how_good())}**"
    yield ""
    yield text(summary.text())
    yield ""


def won(summary: Summary) -> list[tuple[RegionRecord, NodeRecord]]:
    """Regions with a faster kernel, largest share first."""
    return [
        (r, summary.nodes[r.best])
        for r in summary.ranked
        if gain(r) > 1 and r.best is not None and r.best in summary.nodes
    ]


def facts(region: RegionRecord, node: NodeRecord) -> list[str]:
    """The certificate of a winner as a list."""
    lines = [f"- region `{code(region.hash)}`, {region.info['count']} calls a step, node {node.id}"]
    verdict = node.verdict
    if verdict and verdict.timing:
        t = verdict.timing
        lines.append(
            f"- {t.kernel_us:.1f} µs against {t.stock_us:.1f} µs of {text(t.stock)}, {t.samples} samples"
        )
    if verdict:
        lines.append(f"- {verdict.check_count} checks passed")
        if verdict.max_error is not None:
            lines.append(f"- largest error {verdict.max_error:.3g} of what is allowed")
    if node.params:
        lines.append("- parameters " + ", ".join(f"`{code(k)}={v}`" for k, v in node.params.items()))
    return lines


def fenced(source: str, language: str) -> list[str]:
    """A code block that nothing in ``source`` can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", source)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}", source.rstrip("\n"), fence]


def text(words: str) -> str:
    """Words of a proposer or a model as plain words: no markup, one line."""
    flat = " ".join(str(words).split())
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", flat).replace("&", "&amp;")


def code(words: str) -> str:
    """For the inside of a code span."""
    return " ".join(str(words).split()).replace("`", "'")


def _regions(summary: Summary) -> Iterable[str]:
    yield "| region | share | calls | speed-up (95 %) | outcome |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for r in summary.ranked:
        speedup = _speedup(r) if gain(r) > 1 else ""
        info = r.info
        yield (
            f"| {text(info['title'])} | {100 * info['share']:.1f} % | {info['count']} | {speedup} "
            f"| {text(r.reason or r.status)} |"
        )
    for v in sorted(summary.started.get("vendor", ()), key=lambda v: -v["share"]):
        yield (f"| {text(v['name'])} | {100 * v['share']:.1f} % | {v['count']} | | stays on the library |")


def _speedup(region: RegionRecord) -> str:
    if region.low is None or region.high is None:
        return f"{gain(region):.2f}×"
    return f"{gain(region):.2f}× ({region.low:.2f}–{region.high:.2f})"
