"""A real JupyterLab server and a real Chromium, shared by the browser tests."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .jupyter import CHROMIUM, FLAGS, ROOT, Server, jupyter

__all__ = ["ROOT", "Lab", "Server"]

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = pathlib.Path(__file__).parent / "screenshots"

playwright = pytest.importorskip("playwright.sync_api")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with jupyter(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if not pathlib.Path(CHROMIUM).exists():
        pytest.skip("no Chromium on PATH")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


# Requests that JupyterLab makes and answers itself: a session that was shut down, a missing favicon.
_NOT_OURS = (
    "Failed to load resource",
    "Kernel Restart",
    "WebSocket",
    "Unhandled error",
    "comm:",
    "Comm promise",
    "Kernel message validation",
)


class Lab:
    """A JupyterLab page with one notebook open."""

    def __init__(self, server: Server, page: Any) -> None:
        self.server = server
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._said)

    def _said(self, message: Any) -> None:
        """Errors that somebody wrote to the console, but for what Jupyter itself says of a lost server."""
        if message.type == "error" and not any(known in message.text for known in _NOT_OURS):
            self.errors.append(message.text)

    def open(self, notebook: str) -> Lab:
        workspace = f"{notebook.split('.', maxsplit=1)[0]}-{time.monotonic_ns()}"
        self.page.goto(f"{self.server.url}/lab/workspaces/{workspace}/tree/{notebook}?reset")
        self.page.wait_for_function("window.jupyterapp && window.jupyterapp.started")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_idle()
        return self

    def open_empty(self, name: str, theme: str = "JupyterLab Light") -> Lab:
        """A notebook with one empty cell, as a person begins."""
        self.open(self.server.write(name, ""))
        self.theme(theme)
        return self

    def write_cell(self, source: str) -> None:
        """Type a cell at the end and run it (without waiting)."""
        self.page.evaluate(
            """source => {
                const panel = window.jupyterapp.shell.currentWidget, cells = panel.content.model.sharedModel;
                const last = cells.cells[cells.cells.length - 1];
                if (last.getSource() === '') { last.setSource(source); }
                else { cells.insertCell(cells.cells.length, {cell_type: 'code', source}); }
                panel.content.activeCellIndex = cells.cells.length - 1;
            }""",
            source,
        )
        self.execute("notebook:run-cell", wait=False)

    def palette(self, label: str) -> None:
        """Run a command as a person does who does not know where it is."""
        field = self.page.locator("#modal-command-palette input, .lm-CommandPalette-input").last
        chosen = self.page.locator(".lm-CommandPalette-item.lm-mod-active", has_text=label).first
        for _ in range(6):
            # It closes by itself when something else takes the focus, as a page that still loads does.
            self.execute("apputils:activate-command-palette")
            try:
                field.fill(label, timeout=1500)
                if not chosen.is_visible():
                    field.press("ArrowDown", timeout=1500)
                chosen.wait_for(timeout=1500)
                field.press("Enter", timeout=1500)
            except playwright.TimeoutError:
                continue
            return
        pytest.fail(f"the palette has no {label!r}")

    def axe(self, selector: str) -> list[str]:
        """Serious and critical violations inside an element."""
        return violations(self.page, selector)

    def wait_idle(self) -> None:
        status = "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        self.page.wait_for_function(f"{status} === 'idle'", timeout=60_000)

    def execute(self, command: str, args: str = "{}", *, wait: bool = True) -> None:
        call = f"window.jupyterapp.commands.execute('{command}', {args})"
        self.page.evaluate(call if wait else f"{call} && null")

    def run_all(self, *, wait: bool = True) -> None:
        self.execute("notebook:run-all-cells", wait=wait)

    def save(self) -> None:
        self.execute("docmanager:save")

    def theme(self, name: str) -> None:
        self.execute("apputils:change-theme", f"{{theme: '{name}'}}")
        light = "true" if "Light" in name else "false"
        self.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{light}'")

    def reload(self) -> None:
        self.page.reload()
        self.page.wait_for_function("window.jupyterapp && window.jupyterapp.started")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")

    def screenshot(self, name: str, selector: str = ".kf-root:not(.kf-side)") -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.locator(selector).first.screenshot(path=SCREENSHOTS / f"{name}.png")


def violations(page: Any, selector: str) -> list[str]:
    """What axe-core calls serious or critical, one line each; [] where axe-core is not installed is no proof."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm ci)")
    if not page.evaluate("!!window.axe"):
        page.add_script_tag(path=str(AXE))
    found = page.evaluate(
        "selector => axe.run(selector, {resultTypes: ['violations']}).then(r => r.violations)", selector
    )
    return [
        f"{v['id']}: {v['help']} at {[n['html'][:160] for n in v['nodes'][:3]]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


@pytest.fixture
def lab(server: Server, browser: Any, request: pytest.FixtureRequest) -> Iterator[Lab]:
    context = browser.new_context(viewport={"width": 1500, "height": 1100})
    page = context.new_page()
    page.set_default_timeout(30_000)
    before = request.session.testsfailed
    yield Lab(server, page)
    if request.session.testsfailed > before:
        # Next to the others, for whoever reads the log.
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"failed-{request.node.name.replace('/', '-')}.png")
    context.close()
