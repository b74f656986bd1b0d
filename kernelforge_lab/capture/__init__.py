"""Capture: a model call → Workload (regions, counts, times, ceiling)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .workload import Roofs, VendorOp, Workload, WorkloadRegion

__all__ = ["Roofs", "VendorOp", "Workload", "WorkloadRegion", "capture"]


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "cpu",
    level: str = "region",
) -> Workload:
    """See ``capture.session.capture``; torch is imported on the first call."""
    from .session import capture as run

    return run(function, args, kwargs, target=target, level=level)
