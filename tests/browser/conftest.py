"""A real JupyterLab server and a real Chromium, shared by the browser tests."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCREENSHOTS = pathlib.Path(__file__).parent / "screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# Galata's server settings: no token, and the page exposes window.jupyterapp.
_CONFIG = "from jupyterlab.galata import configure_jupyter_server\nconfigure_jupyter_server(c)\nc.LabApp.news_url = None\n"

playwright = pytest.importorskip("playwright.sync_api")


@dataclass(frozen=True)
class Server:
    url: str
    root: pathlib.Path

    def write(self, name: str, *cells: str) -> str:
        """A notebook with these code cells; returns its path for ``Lab.open``."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(notebook, self.root / name)
        return name


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    base = tmp_path_factory.mktemp("jupyter")
    root = base / "root"
    root.mkdir()
    (base / "config.py").write_text(_CONFIG)
    # The committed assets, whichever way the package itself is installed.
    extensions = base / "labextensions"
    extensions.mkdir()
    (extensions / "kernelforge-lab").symlink_to(ROOT / "kernelforge_lab" / "labextension")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JUPYTERLAB_GALATA_ROOT_DIR": str(root),
        "JUPYTER_CONFIG_DIR": str(base / "cfg"),
        "JUPYTER_DATA_DIR": str(base / "data"),
        "JUPYTER_RUNTIME_DIR": str(base / "rt"),
        "IPYTHONDIR": str(base / "ipy"),
    }
    command = [
        *(
            sys.executable,
            "-m",
            "jupyter",
            "lab",
            "--allow-root",
            "--no-browser",
            "--config",
            str(base / "config.py"),
        ),
        *(f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"),
        f"--LabServerApp.extra_labextensions_path={extensions}",
    ]
    with (base / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=env, cwd=root, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{url}/api", process, base / "server.log")
            yield Server(url, root)
        finally:
            process.terminate()
            process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if not pathlib.Path(CHROMIUM).exists():
        pytest.skip("no Chromium on PATH")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Lab:
    """A JupyterLab page with one notebook open."""

    def __init__(self, server: Server, page: Any) -> None:
        self.server = server
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, notebook: str) -> Lab:
        workspace = f"{notebook.split('.', maxsplit=1)[0]}-{time.monotonic_ns()}"
        self.page.goto(f"{self.server.url}/lab/workspaces/{workspace}/tree/{notebook}?reset")
        self.page.wait_for_function("window.jupyterapp && window.jupyterapp.started")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_idle()
        return self

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

    def screenshot(self, name: str, selector: str = ".kf-root") -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.locator(selector).first.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture
def lab(server: Server, browser: Any) -> Iterator[Lab]:
    context = browser.new_context(viewport={"width": 1500, "height": 1100})
    page = context.new_page()
    page.set_default_timeout(30_000)
    yield Lab(server, page)
    context.close()
