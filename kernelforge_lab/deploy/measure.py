"""End to end: the person's model against the forged one, interleaved, with an interval."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from ..capture.devices import settle, target_of
from ..capture.intact import Inputs, own_rng
from ..events import StepMeasured
from ..judge.statistics import QUADS_MIN, bootstrap
from .memory import peak_bytes
from .reference import compare, exact_outputs, tensors_of

_SLOT_S: Final = 0.01  # what the slower side may take before the other has its turn (at least one call)
_QUADS_MAX: Final = 60
_HALF_WIDTH: Final = 0.005


@dataclass(frozen=True)
class Race:
    """Seconds per call of both sides, and the median of block ratios a/b with its 95 % interval."""

    a_s: float
    b_s: float
    ratio: float
    low: float
    high: float


def race(a: Callable[[], float], b: Callable[[], float], limit_s: float = 20.0) -> Race:
    """Interleave A B B A until the interval is narrow or the time is up.

    ``a`` and ``b`` run once and return their own seconds. At least eight quads are taken, whatever the
    limit: fewer give no interval worth deciding on.
    """
    calls = max(1, math.ceil(_SLOT_S / max(a(), b(), 1e-6)))
    log_ratios: list[float] = []
    times: dict[str, list[float]] = {"a": [], "b": []}
    end = time.perf_counter() + limit_s
    while len(log_ratios) < _QUADS_MAX:
        spent = {"a": 0.0, "b": 0.0}
        for side in "abba":
            run = a if side == "a" else b
            taken = [run() for _ in range(calls)]
            spent[side] += sum(taken)
            times[side] += taken
        log_ratios.append(math.log(spent["a"] / spent["b"]))
        if len(log_ratios) < QUADS_MIN:
            continue
        if time.perf_counter() > end or bootstrap(log_ratios).half_width < _HALF_WIDTH:
            break
    ratio, low, high = bootstrap(log_ratios).speedup
    return Race(statistics.median(times["a"]), statistics.median(times["b"]), ratio, low, high)


def measure_step(
    stock: Callable[..., Any],
    forged: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    limit_s: float = 20.0,
) -> StepMeasured:
    """A/B of two callables on the same inputs: outputs compared, times with interval, peak memory.

    A time ends when the device is done. ``installed`` is the verdict: outputs equal within the bound and
    the interval wholly above 1. Both must have run before (compilation and shadow calls are not measured).
    """
    inputs = Inputs(args, kwargs)
    target = target_of(stock, args, kwargs)

    def timed(function: Callable[..., Any]) -> Callable[[], float]:
        def once() -> float:
            own_args, own_kwargs = inputs.take()
            settle(target)
            start = time.perf_counter()
            function(*own_args, **own_kwargs)
            settle(target)
            return time.perf_counter() - start

        return once

    seed = torch.random.initial_seed()
    wanted, stock_s = _outputs(stock, inputs, seed, target)
    got, _ = _outputs(forged, inputs, seed, target)
    inputs.note_mutation()
    own_args, own_kwargs = inputs.take()
    exact = exact_outputs(stock, own_args, own_kwargs, stock_s, limit_s=3 * limit_s)
    max_error, equal = compare(wanted, got, exact)
    del wanted, got, exact
    gc.collect()
    result = race(timed(stock), timed(forged), limit_s)
    installed = equal and result.low > 1.0
    return StepMeasured(
        stock="eager",
        stock_ms=result.a_s * 1e3,
        forged_ms=result.b_s * 1e3,
        speedup=result.ratio,
        low=result.low,
        high=result.high,
        max_error=max_error,
        equal=equal,
        installed=installed,
        stock_bytes=_peak(stock, inputs, target),
        forged_bytes=_peak(forged, inputs, target),
        message=_message(result, equal, max_error),
    )


def _outputs(
    function: Callable[..., Any], inputs: Inputs, seed: int, target: str
) -> tuple[list[torch.Tensor], float]:
    own_args, own_kwargs = inputs.take()
    with own_rng():  # a random model draws the same numbers on both sides
        torch.manual_seed(seed)
        start = time.perf_counter()
        output = function(*own_args, **own_kwargs)
        settle(target)
        return tensors_of(output), time.perf_counter() - start


def _peak(function: Callable[..., Any], inputs: Inputs, target: str) -> int:
    own_args, own_kwargs = inputs.take()
    return peak_bytes(lambda: function(*own_args, **own_kwargs), target)


def _message(result: Race, equal: bool, max_error: float) -> str:
    if not equal:
        return f"Not installed: the outputs differ by {max_error:.3g} times the bound."
    interval = f"{result.ratio:.2f}x ({result.low:.2f}–{result.high:.2f})"
    if result.low > 1.0:
        return f"Installed: {interval} end to end."
    return f"Not installed: {interval} end to end is not surely faster than PyTorch. The model is unchanged."
