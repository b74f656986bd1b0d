# ruff: noqa: E501 - scripts for a notebook and a page, as strings
"""How the panel bears 10,000 nodes, in a real JupyterLab and Chromium: ``python -m benchmarks.widget``.

Writes ``benchmarks/results/cpu/widget.json``:

``fps``                     frames a second while the run streams at 10 updates/s (median over seconds)
``event_to_pixels_p95_ms``  from the event's time stamp in the kernel to the frame that shows it
``open_s``                  from the command to the first full picture of a stored run in the main area
``kernel_core_share``       of one core, what streaming costs the kernel's process beyond making the events
"""

from __future__ import annotations

import json
import pathlib
import statistics
import tempfile
import time
from typing import Any, Final

from playwright.sync_api import sync_playwright

from tests.browser.jupyter import CHROMIUM, FLAGS, ROOT, jupyter

NODES: Final = 10_000
STREAM_S: Final = 10.0
OUT: Final = pathlib.Path(__file__).parent / "results" / "cpu" / "widget.json"

# The kernel's side: a run of NODES nodes, then two more at each of ten updates a second.
SETUP: Final = f"""
import sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
from kernelforge_lab import events as ev
from kernelforge_lab.log import EventLog
from kernelforge_lab.notebook import bundle
from kernelforge_lab.store import Store
from tests.notebook import fakes

made = [e for e in fakes.script(trials={NODES}, run="bench") if e.kind not in ("step_measured",)]
class Streamed(fakes.FakeRun):
    def __init__(self):
        super().__init__()
        self.log = EventLog("bench")
run = Streamed()
for event in made[:-2]:
    run.log.emit(event)
run.log.emit(ev.RunState("running"))
region = made[1].regions[0]["hash"]
root = next(e.node for e in made if e.kind == "node_added" and e.parent is None and e.region == region)
bundle.show(run)
"""
STREAM: Final = f"""
def stream(seconds):
    node = 1_000_000
    end = time.time() + seconds
    trial = {NODES}
    while time.time() < end:
        for _ in range(2):
            node += 1
            run.log.emit(ev.NodeAdded(node, region, root, "templates", "x", "an idea", fakes.source("x", 4), {{}}))
            judged = fakes.verdict("slower", "", 1500.0, 1378.4, 0.92)
            run.log.emit(ev.NodeJudged(node, region, judged, 0.5))
        trial += 2
        run.log.emit(ev.Meter(trial, 999_999, 1.0, 9999.0, 1.0, 0.0, 1.0, f"at {{time.time():.3f}}"))
        time.sleep(0.1)
def cpu(act):
    wall, used = time.time(), time.process_time()
    act()
    return (time.process_time() - used) / (time.time() - wall)
"""
RUN: Final = f"thread = threading.Thread(target=lambda: shares.append(cpu(lambda: stream({STREAM_S}))))\nshares = []\nthread.start()"
# The same events into a log that nobody watches: what making them costs.
IDLE: Final = f"""
thread.join(); run.log.emit(ev.RunState("stopped", "")); time.sleep(3)
quiet = EventLog("quiet"); watched, run.log = run.log, quiet
shares.append(cpu(lambda: stream({STREAM_S / 2})))
print("SHARES", *shares)
"""
STORE: Final = """
store = Store(); log = EventLog("bench", None)
from sqlalchemy.orm import Session
from sqlalchemy import insert
from kernelforge_lab.store.models import EventRow, RunRow
rows = [{**e.as_json(), "seq": i + 1, "at_s": time.time()} for i, e in enumerate(made)]
with Session(store.engine) as session:
    session.add(RunRow(id="bench", title="bench", target="cpu", state="finished", started_at=time.time(), updated_at=time.time()))
    session.flush()
    session.execute(insert(EventRow), [{"run": "bench", "seq": r["seq"], "at_s": r["at_s"], "kind": r["kind"], "body": r} for r in rows])
    session.commit()
print("STORED", len(rows))
"""
WATCH: Final = """
() => {
    const seen = { latencies: [], frames: [], shown: '' };
    window.kfSeen = seen;
    const doing = document.querySelector('.kf-doing');
    const tick = now => {
        seen.frames.push(now);
        const text = doing.textContent;
        if (text !== seen.shown && text.startsWith('at ')) {
            seen.shown = text;
            // The canvas is painted in the frame after the header's; the one after that has shown it.
            requestAnimationFrame(() => requestAnimationFrame(() => seen.latencies.push(Date.now() - 1000 * parseFloat(text.slice(3)))));
        }
        requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
}
"""
OPEN: Final = """
async () => {
    const from = performance.now();
    await window.jupyterapp.commands.execute('kernelforge:open-run', {run: 'bench'});
    const ready = () => document.querySelector('.kf-runview .kf-far')?.textContent.includes('trials');
    while (!ready()) { await new Promise(requestAnimationFrame); }
    await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
    return (performance.now() - from) / 1000;
}
"""


def measure() -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(pathlib.Path(folder)) as server,
        sync_playwright() as p,
    ):
        name = server.write("bench.ipynb", SETUP, STREAM, RUN, IDLE, STORE)
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 1100})
        page.set_default_timeout(90_000)
        page.goto(f"{server.url}/lab/workspaces/bench/tree/{name}?reset")
        page.wait_for_function("window.jupyterapp && window.jupyterapp.started")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        status = "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"

        def run_cell(index: int) -> None:
            # By number: a click into an output makes its cell the active one.
            page.evaluate(f"window.jupyterapp.shell.currentWidget.content.activeCellIndex = {index}")
            page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell') && null")
            page.wait_for_timeout(300)

        page.wait_for_function(status)
        for index in range(2):
            run_cell(index)
            page.wait_for_function(status)
        page.wait_for_function("document.querySelector('.kf-far')?.textContent.includes('trials')")
        page.locator(".kf-region").first.click()
        page.locator(".kf-stage canvas").first.scroll_into_view_if_needed()
        page.wait_for_timeout(3000)
        page.evaluate(WATCH)
        run_cell(2)
        page.wait_for_timeout(1000 * STREAM_S)
        seen = page.evaluate("window.kfSeen")
        run_cell(3)
        page.wait_for_function(
            "[...document.querySelectorAll('.jp-OutputArea-output')].some(o => o.textContent.includes('SHARES'))"
        )
        streaming, making = map(
            float, page.locator(".jp-OutputArea-output", has_text="SHARES").last.inner_text().split()[1:3]
        )
        run_cell(4)
        page.wait_for_function(
            "[...document.querySelectorAll('.jp-OutputArea-output')].some(o => o.textContent.includes('STORED'))"
        )
        opened = page.evaluate(OPEN)
        browser.close()
    frames = seen["frames"]
    seconds = range(1, int((frames[-1] - frames[0]) / 1000))
    fps = [sum(frames[0] + 1000 * s <= f < frames[0] + 1000 * (s + 1) for f in frames) for s in seconds]
    latencies = sorted(seen["latencies"])[0:]
    return {
        "nodes": NODES,
        "updates_per_s": 10,
        "fps": statistics.median(fps),
        "fps_each_s": fps,
        "event_to_pixels_p95_ms": latencies[int(0.95 * (len(latencies) - 1))],
        "event_to_pixels_p50_ms": statistics.median(latencies),
        "updates_seen": len(latencies),
        "open_s": round(opened, 3),
        "kernel_core_share": round(max(0.0, streaming - making), 4),
        "kernel_core_share_streaming": streaming,
        "kernel_core_share_making_events": making,
        "measured_at": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    result = measure()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
