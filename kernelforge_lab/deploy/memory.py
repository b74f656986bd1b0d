"""Peak memory of one call, as torch's allocator saw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def peak_bytes(call: Callable[[], Any], target: str = "cpu") -> int:
    """Most bytes allocated at one time during ``call``, above what was there before.

    Of this thread on the cpu, of the current device on a GPU (whose peak statistics start anew).
    0 when it cannot be told.
    """
    return _peak_cuda(call) if target == "cuda" else _peak_cpu(call)


def _peak_cuda(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return max(0, torch.cuda.max_memory_allocated() - before)


def _peak_cpu(call: Callable[[], Any]) -> int:
    """By the legacy profiler, because it is silent: the current one prints to stderr on some builds,
    which a notebook would show.
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
