"""A run in a real notebook: it grows while one watches, obeys its buttons, and comes back after a reload."""

from __future__ import annotations

import nbformat
import pytest

from .conftest import Lab, Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

START = """
from tests.notebook import fakes
from kernelforge_lab.notebook import bundle
run = fakes.FakeRun(delay_s={delay}, trials={trials}).play()
bundle.show(run)
"""
STATE = ".kf-root .kf-state"


def judged(lab: Lab) -> int:
    text = lab.page.locator(".kf-root .kf-far").first.inner_text()
    return int(text.split("/")[0].split()[0]) if text else 0


def test_a_run_grows_live_and_ends_with_its_measured_step(server: Server, lab: Lab) -> None:
    lab.open(server.write("grows.ipynb", START.format(delay=0.02, trials=60)))
    lab.run_all()
    lab.page.wait_for_selector(STATE)
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'running'")
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'finished'")
    assert lab.page.locator(".kf-best").first.inner_text() == "1.34×"
    lab.screenshot("live-light")
    lab.theme("JupyterLab Dark")
    lab.page.wait_for_timeout(500)
    lab.screenshot("live-dark")
    assert lab.errors == []


def test_clicking_a_node_and_a_region_shows_their_source_and_verdict(server: Server, lab: Lab) -> None:
    lab.open(server.write("click.ipynb", START.format(delay=0, trials=60)))
    lab.run_all()
    lab.page.wait_for_function(f"document.querySelector('{STATE}')?.textContent === 'finished'")
    lab.page.locator(".kf-region", has_text="q_norm·rope").click()
    lab.page.wait_for_function(
        "document.querySelector('.kf-tree-region').textContent.startsWith('q_norm·rope')"
    )
    first = lab.page.locator(".kf-node-title").inner_text()
    lab.page.locator(".kf-stage canvas").focus()
    lab.page.keyboard.press("ArrowUp")
    lab.page.wait_for_function(f"document.querySelector('.kf-node-title').textContent !== '{first}'")
    lab.page.locator(".kf-stage canvas").focus()
    lab.page.keyboard.press("b")
    lab.page.get_by_role("tab", name="Diff").click()
    lab.page.wait_for_selector(".kf-code .kf-added")
    lab.screenshot("diff")
    lab.page.get_by_role("tab", name="Verdict").click()
    assert "guard bands" in lab.page.locator(".kf-facts").inner_text()


def test_pause_resume_and_stop_reach_the_run(server: Server, lab: Lab) -> None:
    lab.open(server.write("buttons.ipynb", START.format(delay=0.05, trials=400)))
    lab.run_all()
    lab.page.locator(".kf-buttons").get_by_role("button", name="Pause").click()
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'paused'")
    lab.page.locator(".kf-buttons").get_by_role("button", name="Resume").click()
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'running'")
    lab.page.locator(".kf-buttons").get_by_role("button", name="Stop").click()
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'stopped'")


def test_stop_is_heard_while_another_cell_sleeps(server: Server, lab: Lab) -> None:
    cells = START.format(delay=0.05, trials=2000), "import time; time.sleep(12); slept = True"
    lab.open(server.write("busy.ipynb", *cells))
    lab.execute("notebook:run-cell-and-select-next")
    lab.page.wait_for_selector(STATE)
    # The second hello arrives over the kernel's subshell about a second after the first view.
    lab.page.wait_for_timeout(2000)
    lab.execute("notebook:run-cell-and-select-next", wait=False)
    lab.page.wait_for_timeout(500)
    lab.page.locator(".kf-buttons").get_by_role("button", name="Stop").click()
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'stopped'", timeout=4_000)


def test_a_reload_brings_the_whole_run_back(server: Server, lab: Lab) -> None:
    lab.open(server.write("reload.ipynb", START.format(delay=0.04, trials=300)))
    lab.run_all()
    lab.page.wait_for_function("document.querySelector('.kf-far')?.textContent.startsWith('3')")
    lab.save()
    before = judged(lab)
    lab.reload()
    lab.page.wait_for_selector(STATE)
    lab.page.wait_for_function(f"parseInt(document.querySelector('.kf-far')?.textContent) > {before}")
    lab.page.wait_for_function(
        f"document.querySelector('{STATE}').textContent === 'finished'", timeout=60_000
    )
    assert judged(lab) == 300


def test_a_saved_notebook_shows_its_run_without_a_kernel(server: Server, lab: Lab) -> None:
    name = server.write("saved.ipynb", START.format(delay=0, trials=60))
    lab.open(name)
    lab.run_all()
    lab.page.wait_for_function(f"document.querySelector('{STATE}')?.textContent === 'finished'")
    lab.page.wait_for_timeout(500)
    lab.save()
    saved = nbformat.read(server.root / name, as_version=4).cells[0].outputs[0].data
    assert "finished" in saved["text/plain"] and "<script" not in saved["text/html"]
    lab.execute("kernelmenu:shutdown")
    lab.reload()
    lab.page.wait_for_function(f"document.querySelector('{STATE}')?.textContent === 'finished'")
    assert "Error displaying widget" not in lab.page.content()
    assert lab.page.locator(".kf-buttons").first.is_hidden()


def test_a_restarted_kernel_is_said_to_be_gone(server: Server, lab: Lab) -> None:
    lab.open(server.write("gone.ipynb", START.format(delay=0.05, trials=2000)))
    lab.run_all()
    lab.page.wait_for_function(f"document.querySelector('{STATE}')?.textContent === 'running'")
    lab.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel().then(() => null)")
    lab.page.wait_for_function(f"document.querySelector('{STATE}').textContent === 'kernel gone'")
