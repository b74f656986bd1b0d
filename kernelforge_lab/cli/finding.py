"""One line of ``kernelforge doctor``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """``state``: ok, optional (works without) or missing (nothing works without). ``todo`` is a next step."""

    name: str
    state: str
    detail: str
    todo: str = ""
