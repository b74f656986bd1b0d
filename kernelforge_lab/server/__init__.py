"""What JupyterLab asks the server for: the stored runs, without any kernel."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "kernelforge_lab.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the routes under ``<base>/kernelforge``; nothing is opened before somebody asks."""
    from .handlers import routes
    from .stored import StoredRuns

    app.web_app.add_handlers(".*$", routes(app.web_app.settings["base_url"], StoredRuns()))
