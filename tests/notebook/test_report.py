"""Reports, pictures, charts and bundles: complete, self-contained, and deaf to what a proposer wrote."""

from __future__ import annotations

import json
import re
from typing import Any

import nbformat
import pytest

from kernelforge_lab import events as ev
from kernelforge_lab.log import EventLog
from kernelforge_lab.notebook import bundle, charts, picture
from kernelforge_lab.notebook.report import _proof, report
from kernelforge_lab.notebook.reports import render
from kernelforge_lab.notebook.summary import Summary, gain
from kernelforge_lab.notebook.verify import verify

from .fakes import FakeRun, fixture_events

EVIL = "</script><img src=x onerror=alert(1)><!--"


@pytest.fixture
def events() -> list[dict[str, Any]]:
    return fixture_events()


def evil_events() -> list[dict[str, Any]]:
    """A run whose every free text tries to become markup."""
    events = json.loads(json.dumps(fixture_events(20)))
    for event in events:
        for name in ("title", "device", "source", "idea", "reason", "message"):
            if isinstance(event.get(name), str):
                event[name] = EVIL
        if event["kind"] == "run_started":
            event["uncaptured"], event["advice"] = [EVIL], EVIL
            for region in event["regions"]:
                region["title"] = EVIL
        if event["kind"] == "node_judged":
            event["verdict"]["evidence"] = EVIL
    return events


def test_the_report_holds_the_whole_run_and_fetches_nothing(events: list[dict[str, Any]]) -> None:
    html = report(events)
    data = json.loads(re.search(r'id="kf-run">(.*?)</script>', html, re.DOTALL)[1])  # type: ignore[index]
    assert Summary(data["events"]).as_json() == Summary(events).as_json()
    assert "1.34× (1.31–1.37)" in html and "no better kernel in 8 tries" in html
    assert not re.search(r'(?:src|href)="(?!data:)', html.split('id="kf-run"')[0])


def test_text_of_proposers_never_becomes_markup() -> None:
    html = report(evil_events())
    assert "<img src=x" not in html
    assert html.count("</script>") == 2
    assert "<img src=x" not in bundle.html(Summary(evil_events()))
    assert "<img" not in picture.svg(Summary(evil_events()))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 12])
def test_unfinished_runs_have_a_report_too(events: list[dict[str, Any]], count: int) -> None:
    assert report(events[:count]).startswith("<!doctype html>")
    assert picture.svg(Summary(events[:count])).endswith("</svg>")


def test_a_run_without_gain_says_so() -> None:
    log = EventLog("r")
    for event in ev.Log("info", "x"), ev.RunState("finished", "everything is at the roof"):
        log.emit(event)
    html = report(log.events)
    assert "no gain" in html and "everything is at the roof" in html


def test_the_bundle_has_a_form_for_every_front_end(events: list[dict[str, Any]]) -> None:
    run = FakeRun().play().wait()
    data = bundle.mimebundle(run)
    assert set(data) == {bundle.RUN_MIME, bundle.WIDGET_MIME, "text/html", "text/plain"}
    assert data[bundle.RUN_MIME]["model_id"] == data[bundle.WIDGET_MIME]["model_id"]
    assert "data:image/png;base64," in data["text/html"]
    assert not re.search(r"<(script|style|link)", data["text/html"])
    json.dumps(data)


def test_a_run_has_one_widget_however_often_it_is_shown() -> None:
    run = FakeRun()
    assert bundle.widget_of(run) is bundle.widget_of(run)
    assert bundle.widget_of(run) is not bundle.widget_of(FakeRun())


@pytest.mark.parametrize("make", [charts.roofline, charts.progress, charts.breakdown, charts.costs])
def test_charts_are_valid_vega_lite_with_titled_axes(events: list[dict[str, Any]], make: Any) -> None:
    spec = json.dumps(make(events).to_dict())
    assert "gemma4 (small)" in spec and '"title"' in spec


def test_the_breakdown_adds_up_to_what_was_captured(events: list[dict[str, Any]]) -> None:
    started = Summary(events).started
    total = sum(r["share"] for r in started["regions"]) + sum(v["share"] for v in started["vendor"])
    frame = charts.breakdown(events).data
    assert frame["share"].sum() == pytest.approx(total)


def test_markdown_keeps_what_proposers_wrote_inside_code_and_words() -> None:
    events = evil_events()
    for event in events:
        if event["kind"] == "node_added":
            event["source"] = "```\n# not a heading\n````\n" + EVIL
    text = render(events, "md")
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "not a heading" in text and "not a heading" not in outside
    assert "<img" not in outside.replace("\\<img", "")


def test_the_notebook_report_holds_its_kernels_as_data(events: list[dict[str, Any]]) -> None:
    notebook = nbformat.reads(render(events, "ipynb"), as_version=4)
    nbformat.validate(notebook)
    data, judge = [c.source for c in notebook.cells if c.cell_type == "code"]
    namespace: dict[str, Any] = {}
    exec(data, namespace)
    winners = {r.info["text"]: gain(r) for r in Summary(events).ranked if gain(r) > 1}
    assert {k["region"]: k["speedup"] for k in namespace["KERNELS"]} == winners
    assert "verify(KERNELS)" in judge


@pytest.mark.parametrize("works", [True, False])
def test_a_report_s_kernels_are_judged_again(works: bool) -> None:
    region = "region(in0: f32[64,32]) {\n  t0 = aten.relu.default(in0) : f32[64,32]\n  return t0\n}"
    source = (
        "// forge: target cpu\n// forge: launch f args=(in0, out0)\n"
        'extern "C" void f(const float* in0, float* out0) {\n'
        f"  for (int64_t i = 0; i < NUMEL; ++i) out0[i] = in0[i] < 0 ? {'0' if works else '1'} : in0[i];\n}}\n"
    )
    entry = {"region": region, "source": source, "params": {}, "target": "cpu", "speedup": 1.5}
    (row,) = verify([entry]).to_dict("records")
    assert row["reported"] == 1.5
    assert (row["status"] in ("faster", "slower") and row["here"] > 0) if works else row["status"] == "wrong"


def test_a_certificate_is_shown_with_what_it_was_issued_on() -> None:
    from kernelforge_lab.judge.verdict import Status, Timing, Verdict
    from tests.deploy.helpers import REGION, certified, kernel

    paper = certified(REGION, kernel()).verdict
    assert paper is not None and paper.certificate is not None
    timing = Timing(10.0, "eager", 20.0, 2.0, 1.9, 2.1, 40)
    full = {**paper.certificate, "timings": (timing.__dict__,), "checks": {"repeats": 6}, "seeds": (11, 12)}
    facts = dict(_proof(Verdict(Status.FASTER, certificate=full)))
    assert full["device"] in facts["proven on"] and "torch" in facts["proven on"]
    assert "6 checks" in facts["certificate"] and "11, 12" in facts["certificate"]
    assert facts["in fresh processes"] == "2.00× (1.90–2.10)"
    assert _proof(Verdict(Status.FASTER)) == []
