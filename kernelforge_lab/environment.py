"""Whether somebody is watching: decides between returning at once and waiting with plain progress."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Final

# jupyter_server sets the first for sessions opened in JupyterLab, Notebook and JupyterHub (nbclient and
# papermill start kernels without it); the others are VS Code's.
_VARIABLES: Final = ("JPY_SESSION_NAME", "VSCODE_PID")


def is_interactive() -> bool:
    """True in a notebook that a person has open, False in scripts and under nbconvert or papermill."""
    if "ipykernel" not in sys.modules:
        return False
    return any(os.environ.get(name) for name in _VARIABLES) or _is_colab()


def _is_colab() -> bool:
    try:
        return importlib.util.find_spec("google.colab") is not None
    except ImportError:
        return False
