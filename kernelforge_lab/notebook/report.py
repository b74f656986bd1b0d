"""The self-contained HTML report: everything inlined, nothing fetched, readable without scripts."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import jinja2
from markupsafe import Markup

from ..history import NodeRecord, RegionRecord
from ..judge.certificate import certificate_of
from ..judge.verdict import Verdict
from . import picture, wire
from .summary import Summary, gain

Json = dict[str, Any]

_HERE: Final = pathlib.Path(__file__).parent
_STATIC: Final = _HERE.parent / "static"


def report(run_or_events: Any) -> str:
    """HTML of a run (anything with ``log.events``) or of its list of event JSONs, finished or not."""
    log = getattr(run_or_events, "log", None)
    events: list[Json] = list(log.events if log is not None else run_or_events)
    summary = Summary(events)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        summary=summary,
        started=summary.started,
        made=_date(summary),
        regions=[_region_row(summary, r) for r in summary.ranked],
        vendor=sorted(summary.started.get("vendor", ()), key=lambda v: -v["share"]),
        winners=[_certificate(r, node) for r, node in _won(summary)],
        environment=list(_environment(summary)),
        # Ours, or escaped by us: the only text that reaches the page unescaped.
        picture=Markup(picture.img_tag(summary)),  # noqa: S704
        css=Markup((_STATIC / "widget.css").read_text("utf-8")),  # noqa: S704
        js=Markup((_STATIC / "report.js").read_text("utf-8")),  # noqa: S704
        data=script_json(wire.saved(events, each_chars=None)),
    )


def script_json(data: Any) -> Markup:
    """JSON for the inside of a ``<script>``: no text in it can end the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - see above


def _won(summary: Summary) -> list[tuple[RegionRecord, NodeRecord]]:
    return [
        (r, summary.nodes[r.best])
        for r in summary.ranked
        if gain(r) > 1 and r.best is not None and r.best in summary.nodes
    ]


def _region_row(summary: Summary, region: RegionRecord) -> Json:
    info = region.info
    best = summary.best(region) if gain(region) > 1 else None
    root = summary.nodes[region.root].verdict if region.root is not None else None
    stock = root.timing if root else None
    timing = best.verdict.timing if best and best.verdict else None
    return {
        "title": info["title"],
        "hash": region.hash,
        "share": info["share"],
        "count": info["count"],
        "time": _us(info["time_us"]),
        "floor": _us(info["floor_us"]),
        "stock": f"{_us(stock.stock_us)} {stock.stock}" if stock else "",
        "kernel": _us(timing.kernel_us) if timing else "",
        "speedup": _interval(region) if timing else "",
        "outcome": region.reason if gain(region) == 1 else f"{region.status}; {region.reason}".rstrip("; "),
    }


def _certificate(region: RegionRecord, node: NodeRecord) -> Json:
    verdict = node.verdict
    facts: list[tuple[str, str]] = [("region", region.hash), ("inputs", ", ".join(region.info["inputs"]))]
    if verdict is not None:
        facts.append(
            ("checks", ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in verdict.checks.items()))
        )
        if verdict.max_error is not None:
            facts.append(("largest error", f"{verdict.max_error:.3g} of what is allowed"))
        if verdict.timing is not None:
            t = verdict.timing
            facts.append(("kernel", f"{_us(t.kernel_us)} ({t.samples} samples)"))
            facts.append(("best stock", f"{_us(t.stock_us)} ({t.stock})"))
        facts += [(name, _us(us)) for name, us in verdict.stocks_us.items()]
        facts += [(name.replace("_", " "), f"{value:g}") for name, value in verdict.resources.items()]
        facts.append(("binary", verdict.binary_hash))
        facts += _proof(verdict)
    if node.params:
        facts.append(("parameters", ", ".join(f"{k}={v}" for k, v in node.params.items())))
    return {"title": region.info["title"], "speedup": _interval(region), "node": node, "facts": facts}


def _proof(verdict: Verdict) -> list[tuple[str, str]]:
    paper = certificate_of(verdict)
    if paper is None:
        return []
    found = " and ".join(f"{t['speedup']:.2f}× ({t['low']:.2f}–{t['high']:.2f})" for t in paper.timings)
    versions = ", ".join(f"{name} {version}" for name, version in paper.versions.items())
    seeds = ", ".join(map(str, paper.seeds))
    proof = f"source {paper.source[:12]}, {sum(paper.checks.values())} checks, seeds {seeds}"
    return [
        ("certificate", proof),
        ("proven on", f"{paper.device}; {versions}"),
        ("in fresh processes", found),
    ]


def _environment(summary: Summary) -> Iterable[tuple[str, str]]:
    import importlib.metadata
    import platform

    started: Mapping[str, Any] = summary.started
    meter: Mapping[str, Any] = summary.meter
    yield "kernels judged", str(summary.judged)
    if meter:
        yield "time", f"{meter['elapsed_s']:.0f} s of {meter['limit_s']:.0f} s"
        yield "money", f"${meter['spent_usd']:.4f} of ${meter['budget_usd']:.2f}"
    if started:
        yield "seed", str(started["seed"])
        yield "proposers", ", ".join(started["proposers"])
        yield "device", f"{started['device']} ({started['target']})"
    if summary.guard:
        fallbacks = ", ".join(f"{why}: {n}" for why, n in summary.guard["fallbacks"].items()) or "none"
        yield "guard", f"{summary.guard['hits']} hits; fallbacks: {fallbacks}"
    yield "report made with", f"Python {platform.python_version()} on {platform.platform()}"
    for package in ("kernelforge-lab", "torch"):
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue


def _date(summary: Summary) -> str:
    at_s = summary.started.get("at_s")
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s)) if at_s else ""


def _interval(region: RegionRecord) -> str:
    if region.low is None or region.high is None:
        return f"{gain(region):.2f}×"
    return f"{gain(region):.2f}× ({region.low:.2f}–{region.high:.2f})"


def _us(us: float) -> str:
    return f"{us / 1e3:.2f} ms" if us >= 1e4 else f"{us:.1f} µs"
