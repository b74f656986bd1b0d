"""From an empty notebook: the magic, the toolbar button, and what a non-interactive execution leaves."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from .conftest import ROOT, Lab, Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from tests.notebook import fakes
from kernelforge_lab.notebook import magics
magics.start = lambda call, options: fakes.FakeRun(delay_s=0.02, title=call.name).play()
"""
MODEL = """
import torch
class TinyModel(torch.nn.Module):
    def forward(self, x):
        return x * 2
model, x = TinyModel(), torch.ones(3)
"""
STATE = ".kf-root .kf-state"


def test_the_magic_returns_at_once_with_one_live_panel(server: Server, lab: Lab) -> None:
    cells = LOAD, MODEL, "%load_ext kernelforge_lab", "%%forge --into run\nmodel(x)", "after = run.state"
    lab.open(server.write("magic.ipynb", *cells))
    lab.run_all()
    lab.page.wait_for_selector(STATE)
    assert lab.page.locator(".kf-root:not(.kf-side)").count() == 1
    outputs = lab.page.locator(".jp-Cell:nth-of-type(4) .jp-OutputArea-output")
    lab.page.wait_for_function("document.querySelector('.kf-title').textContent === 'TinyModel'")
    assert "tensor([2., 2., 2.])" in outputs.first.inner_text()
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'finished'")
    assert lab.page.locator(".kf-root:not(.kf-side)").count() == 1


def test_the_cell_toolbar_forges_a_cell(server: Server, lab: Lab) -> None:
    lab.open(server.write("button.ipynb", LOAD + MODEL, "model(x)"))
    lab.execute("notebook:run-cell-and-select-next")
    lab.wait_idle()
    lab.page.locator(".jp-Cell").nth(1).locator(".jp-InputArea-editor").click()
    lab.execute("kernelforge:forge-cell")
    lab.page.wait_for_function(f"document.querySelector('{STATE}')?.textContent === 'finished'")
    assert lab.page.locator(".jp-Cell").nth(1).locator(".cm-content").inner_text().startswith("%%forge")


def test_executed_without_a_person_the_notebook_keeps_the_finished_run(tmp_path: object) -> None:
    cells = LOAD, MODEL, "%load_ext kernelforge_lab", "%%forge\nmodel(x)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[-1].outputs
    printed = "".join(o.text for o in outputs if o.output_type == "stream")
    assert "ceiling 1.52×" in printed and "outputs equal" in printed
    (shown,) = [o.data for o in outputs if "application/vnd.kernelforge.run.v1+json" in o.get("data", {})]
    assert "finished" in shown["text/plain"] and "data:image/png" in shown["text/html"]
    states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    (widget,) = [s["state"] for s in states.values() if s["state"].get("_anywidget_id")]
    assert widget["status"] == "finished"
