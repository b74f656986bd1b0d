"""The whole way of a person, once in light and once in dark. Only judge and proposer are fakes (fakes.py)."""

from __future__ import annotations

import re
import time
from typing import Any

import nbformat
import pytest

from .conftest import ROOT, SCREENSHOTS, Lab, Server, violations

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

MODEL = """
import torch
from torch import nn
torch.set_num_threads(2)

class Block(nn.Module):
    # Narrow linears and wide norms: the regions keep their share of the step on a busy machine too.
    def __init__(self, width=1024):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.down, self.up = nn.Linear(width, 32, bias=False), nn.Linear(32, width, bias=False)

    def forward(self, x):
        h = self.norm(x) * 1.5 + x
        return x + torch.tanh(nn.functional.gelu(self.up(self.down(h))) * x)

model, x = Block().eval(), torch.randn(512, 1024)
"""
FAKES = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom tests.browser import fakes; fakes.install()"
FORGE = "%%forge --trials 400 --minutes 5 --into run\nwith torch.no_grad():\n    model(x)"
STATE = "document.querySelector('.kf-root .kf-state')?.textContent"
# From the click in the page to the word in the page: a busy machine's Playwright is not our second.
STOPWATCH = """() => {
    const state = document.querySelector('.kf-root .kf-state');
    document.querySelector('.kf-buttons').addEventListener('click', () => {
        const from = performance.now();
        new MutationObserver(() => {
            if (state.textContent === 'stopped') { window.kfStoppedMs = performance.now() - from; }
        }).observe(state, {childList: true, characterData: true, subtree: true});
    }, {once: true, capture: true});
}"""
FAR = "parseInt(document.querySelector('.kf-far')?.textContent || '0')"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_from_an_empty_notebook_to_a_report(server: Server, lab: Lab, theme: str) -> None:
    page = lab.page

    def shot(step: str) -> None:
        lab.screenshot(f"scenario-{theme.lower()}-{step}")

    name = f"scenario-{theme.lower()}.ipynb"
    lab.open_empty(name, f"JupyterLab {theme}")
    for source in "%load_ext kernelforge_lab", FAKES, MODEL, FORGE:
        lab.write_cell(source)

    # The tree grows while one watches.
    page.wait_for_selector(".kf-root .kf-state", timeout=60_000)
    page.wait_for_function(f"{STATE} === 'running'", timeout=60_000)
    page.wait_for_function(f"{FAR} >= 1", timeout=60_000)
    before = page.evaluate(FAR)
    page.wait_for_function(f"{FAR} > {before}", timeout=60_000)
    shot("1-growing")

    # Pause: nothing more is started; what is there can be looked at.
    page.locator(".kf-buttons").get_by_role("button", name="Pause").click()
    page.wait_for_function(f"{STATE} === 'paused'")
    canvas = page.locator(".kf-stage canvas")
    page.locator(".kf-region", has_text=re.compile(r"[1-9] tried")).first.click()
    canvas.focus()
    page.keyboard.press("0")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.querySelector('.kf-node-title').textContent.startsWith('#')")
    title = page.locator(".kf-node-title").inner_text()
    page.keyboard.press("ArrowUp")
    page.wait_for_function(f"document.querySelector('.kf-node-title').textContent !== {title!r}")
    click_node(lab, title)
    page.wait_for_function(f"document.querySelector('.kf-node-title').textContent === {title!r}")
    page.get_by_role("tab", name="Diff").click()
    page.locator(".kf-against").get_by_role("button", name="stock").click()
    page.wait_for_selector(".kf-code .kf-added")
    shot("2-diff")
    page.get_by_role("tab", name="Verdict").click()
    assert "checks" in page.locator(".kf-facts").inner_text()
    assert lab.axe(".kf-root") == []
    page.locator(".kf-buttons").get_by_role("button", name="Resume").click()
    page.wait_for_function(f"{STATE} === 'running'")

    # Edit a source and have it judged.
    page.locator(".kf-actions").get_by_role("button", name="Edit").click()
    editor = page.locator(".kf-editor")
    assert "// forge: launch" in editor.input_value()
    editor.fill(editor.input_value() + '\nstatic_assert(false, "a person\'s mistake");\n')
    page.get_by_role("button", name="Judge it").click()
    page.wait_for_function("document.querySelector('.kf-node-title').textContent.endsWith('you')")
    page.wait_for_function(
        "document.querySelector('.kf-sentence').textContent.startsWith('Did not compile')", timeout=60_000
    )
    assert "a person's mistake" in page.locator(".kf-sentence").inner_text()
    shot("3-edited")

    # A reload in the middle of the run brings every node back.
    lab.save()
    nodes = page.evaluate(FAR)
    lab.reload()
    page.wait_for_function(f"{FAR} >= {nodes}", timeout=30_000)
    page.wait_for_function(f"['running', 'finished', 'measuring'].includes({STATE})", timeout=30_000)
    shot("4-reloaded")

    # Stop is heard within a second while another cell sleeps.
    page.wait_for_function("document.querySelector('.kf-buttons:not([hidden])')")
    page.wait_for_timeout(1500)
    lab.write_cell("import time; time.sleep(5); slept = True")
    page.wait_for_timeout(700)
    page.evaluate(STOPWATCH)
    page.locator(".kf-buttons").get_by_role("button", name="Stop").click()
    page.wait_for_function("window.kfStoppedMs !== undefined", timeout=4_500)
    assert page.evaluate("window.kfStoppedMs") <= 1000
    shot("5-stopped")
    lab.wait_idle()
    lab.save()
    judged = page.evaluate(FAR)

    # A restarted kernel is said to be gone, and the stored run can be had again.
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel().then(() => null)")
    page.wait_for_function("document.querySelector('.kf-doing').textContent.includes('kernel has gone')")
    shot("6-kernel-gone")
    lab.wait_idle()
    lab.write_cell("import kernelforge_lab\nkernelforge_lab.load()")
    page.wait_for_function("document.querySelectorAll('.kf-root .kf-far').length === 2", timeout=30_000)
    assert page.locator(".kf-root .kf-far").nth(1).inner_text().startswith(str(judged))

    # The saved notebook shows its run without any kernel.
    lab.save()
    lab.execute("kernelmenu:shutdown")
    lab.reload()
    page.wait_for_function(f"{STATE} === 'stopped'", timeout=30_000)
    assert page.evaluate(FAR) == judged
    assert "Error displaying widget" not in page.content()
    assert page.locator(".kf-buttons").first.is_hidden()
    shot("7-without-kernel")

    # The report, from the palette, without a kernel; it opens offline.
    lab.palette("Export the Report (.html)")
    report = wait_for_file(server, r"Block-[\w-]+\.html")
    page.get_by_text("Report written to").first.wait_for()
    read_offline(lab, report.as_uri(), f"scenario-{theme.lower()}-8-report", theme)
    saved = nbformat.read(server.root / name, as_version=4)
    assert any(
        "application/vnd.kernelforge.run.v1+json" in o.get("data", {})
        for c in saved.cells
        for o in c.get("outputs", [])
    )
    report.unlink()
    assert lab.errors == []


def click_node(lab: Lab, title: str) -> None:
    """Click where the tree says, by its cursor and its hover line, that this node is."""
    box = lab.page.locator(".kf-stage canvas").bounding_box()
    spots = lab.page.evaluate(
        """() => {
            const canvas = document.querySelector('.kf-stage canvas'), box = canvas.getBoundingClientRect(), spots = [];
            for (let y = 8; y < box.height; y += 16) {
                for (let x = 8; x < box.width; x += 16) {
                    canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y}));
                    if (canvas.style.cursor === 'pointer') { spots.push([x, y]); }
                }
            }
            return spots;
        }"""
    )
    for x, y in spots:
        lab.page.mouse.move(box["x"] + x, box["y"] + y)
        lab.page.wait_for_timeout(60)
        line = lab.page.locator(".kf-hover")
        if line.is_visible() and line.inner_text().startswith(f"{title.split(maxsplit=1)[0]} "):
            lab.page.mouse.click(box["x"] + x, box["y"] + y)
            return
    pytest.fail(f"{title} is nowhere in the tree")


def wait_for_file(server: Server, pattern: str) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [p for p in server.root.iterdir() if re.fullmatch(pattern, p.name)]
        if found:
            time.sleep(0.2)
            return found[0]
        time.sleep(0.1)
    pytest.fail(f"no file {pattern} in {[p.name for p in server.root.iterdir()]}")


def read_offline(lab: Lab, url: str, shot: str, theme: str) -> None:
    context = lab.page.context.browser.new_context(
        viewport={"width": 1400, "height": 1000}, color_scheme=theme.lower()
    )
    context.set_offline(True)
    errors: list[str] = []
    asked: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: asked.append(r.url))
    page.goto(url)
    page.wait_for_selector("#kf-view .kf-root")
    page.wait_for_timeout(300)
    page.screenshot(path=SCREENSHOTS / f"{shot}.png")
    assert violations(page, "body") == []
    assert errors == [] and [r for r in asked if not r.startswith(("file:", "data:"))] == []
    context.close()
