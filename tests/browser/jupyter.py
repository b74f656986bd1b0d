"""A real Jupyter server and a real Chromium, for the browser tests and the widget's benchmark."""

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
from contextlib import contextmanager
from dataclasses import dataclass

import nbformat

ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# Galata's server settings: no token, and the page exposes window.jupyterapp.
_CONFIG = "from jupyterlab.galata import configure_jupyter_server\nconfigure_jupyter_server(c)\nc.LabApp.news_url = None\n"


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


@contextmanager
def jupyter(base: pathlib.Path, command: str = "lab") -> Iterator[Server]:
    """A server of its own (``lab`` or ``notebook``) with its files, settings and run store under ``base``."""
    root = base / "root"
    root.mkdir()
    (base / "config.py").write_text(_CONFIG)
    news = base / "cfg/lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
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
        # Runs of these tests are nobody's runs; the server and its kernels share the store.
        "KERNELFORGE_STORE": f"sqlite:///{base / 'runs.sqlite'}",
    }
    line = [
        *(
            sys.executable,
            "-m",
            "jupyter",
            command,
            "--allow-root",
            "--no-browser",
            "--config",
            str(base / "config.py"),
        ),
        *(f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"),
        f"--LabServerApp.extra_labextensions_path={extensions}",
        "--ServerApp.jpserver_extensions={'kernelforge_lab.server': True}",
    ]
    with (base / "server.log").open("w") as log:
        process = subprocess.Popen(line, env=env, cwd=root, stdout=log, stderr=log)
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
