"""Peak memory of one call, as torch's allocator saw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def peak_bytes(call: Callable[[], Any]) -> int:
    """Most bytes this thread had allocated at one time during ``call``, above what was there before.

    0 when it cannot be told. The legacy profiler is used because it is silent: the current one prints
    to stderr on some builds, which a notebook would show.
    """
    profiler: Any = torch._C._autograd
    try:
        state, plain = torch._C._profiler.ProfilerState.CPU, torch._C._profiler._ExperimentalConfig()
        config = torch._C._profiler.ProfilerConfig(state, False, True, False, False, False, plain)
        profiler._enable_profiler_legacy(config)
    except (AttributeError, RuntimeError, TypeError):  # another profiler is running, or torch moved it
        return 0
    try:
        call()
    finally:
        records: Any = profiler._disable_profiler_legacy()
    most = 0
    for thread in records:
        now = peak = 0
        for event in thread:
            if event.kind() == "memory_alloc":
                now += event.cpu_memory_usage()
                peak = max(peak, now)
        most = max(most, peak)
    return most
