"""Where a captured call spends its time: a clock around every region and library operator.

On a GPU the host only queues work, so a call has two times: the host's and, from passes in which each call
runs alone behind a delay, the device's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from ..kernels.region import Region
from ..kernels.stats import InputStats
from .cuda_clock import CudaClock
from .graph import SplitGraph, Step
from .specs import disagreement

_MIN_PASSES: Final = 5
_MAX_PASSES: Final = 40
_STEADY: Final = 0.02  # passes end when the median moved less than this over the last half of them
_SAMPLE: Final = 1 << 20  # elements looked at for mean and deviation


@dataclass(frozen=True)
class Sample:
    """Medians of one call site over the passes: µs on the host, and on the device (the same on a cpu)."""

    step: Step
    time_us: float
    device_us: float

    def cost_us(self, busy: float) -> float:
        """What the step pays for it when the device is ``busy`` (0 to 1) of the step.

        A device that is always busy pays device time only; one that waits for the host pays for the
        host's work instead, where that is longer.
        """
        return self.device_us + max(0.0, self.time_us - self.device_us) * (1 - busy)


@dataclass
class Clock:
    """Times every non-view step of the graphs it dresses; in its first pass it looks at real tensors.

    ``alone`` is given for passes in which every call is timed on the device by itself.
    """

    looking: bool = False
    alone: CudaClock | None = None
    stats: dict[str, tuple[InputStats, ...]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    _times: list[tuple[Step, list[int], list[float]]] = field(default_factory=list)

    def dress(self, split: SplitGraph) -> Callable[[list[Any]], tuple[Any, ...]]:
        """The graph as stock calls with this clock around each."""
        return split.build(lambda _: None, self._wrap)

    def _wrap(self, call: Callable[..., Any], step: Step) -> Callable[..., Any]:
        taken: list[int] = []
        device_s: list[float] = []
        self._times.append((step, taken, device_s))
        now = time.perf_counter_ns
        region = step.region

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self.looking:
                out = call(*args, **kwargs)
                if region is not None:
                    self._look(region, args, out)
                return out
            if self.alone is not None:
                host_s = taken[-1] / 1e9 if taken else 0.0
                out, seconds = self.alone.time(lambda: call(*args, **kwargs), host_s)
                device_s.append(seconds)
                return out
            start = now()
            out = call(*args, **kwargs)
            taken.append(now() - start)
            return out

        return timed

    def _look(self, region: Region, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        name = region.hash
        known = self.stats.get(name)
        if known is None:
            self.stats[name] = tuple(describe(value) for value in inputs)
        else:  # integers index things: the judge must stay inside what any occurrence had
            self.stats[name] = tuple(
                old if value.is_floating_point() else _wider(old, describe(value))
                for old, value in zip(known, inputs, strict=True)
            )
        names = (*region.input_names, *region.output_names)
        pairs = zip(names, (*inputs, *outputs), (*region.inputs, *region.outputs), strict=True)
        for label, value, spec in pairs:
            reason = disagreement(value, spec)
            if reason is not None:
                self.wrong.setdefault(name, f"{label} is not what tracing promised: {reason}")

    def forget(self) -> None:
        """Drop the times taken so far (warm-up)."""
        for _, taken, device_s in self._times:
            taken.clear()
            device_s.clear()

    def samples(self) -> list[Sample]:
        """One sample per call site that ran."""
        found = []
        for step, taken, device_s in self._times:
            if taken:
                host_us = statistics.median(taken) / 1e3
                device_us = statistics.median(device_s) * 1e6 if device_s else host_us
                found.append(Sample(step, host_us, device_us))
        return found


def repeat(call: Callable[[], float], limit_s: float, *, least: int = _MIN_PASSES) -> list[float]:
    """Run ``call`` (which returns its own seconds) until its median is steady or the time is up."""
    taken: list[float] = []
    end = time.perf_counter() + limit_s
    while len(taken) < _MAX_PASSES:
        taken.append(call())
        if time.perf_counter() > end:
            break
        if len(taken) >= 2 * least:
            half = statistics.median(taken[: len(taken) // 2])
            if abs(statistics.median(taken) - half) <= _STEADY * half:
                break
    return taken


def describe(value: torch.Tensor) -> InputStats:
    """Range and moments over the finite elements (moments from a sample of a large tensor)."""
    with torch.no_grad():
        flat = value.detach().flatten() if value.is_contiguous() else _distinct(value)
        count = flat.numel()
        if count == 0:
            return InputStats(0.0, 0.0, 0.0, 0.0)
        if not flat.is_floating_point():
            whole = flat.to(torch.uint8) if flat.dtype == torch.bool else flat
            low, high = (float(x) for x in torch.aminmax(whole))
            some = flat[:: max(1, count // _SAMPLE)].double()
            zeros = float((some == 0).double().mean())
            return InputStats(low, high, float(some.mean()), float(some.std(unbiased=False)), zeros)
        nan, inf = float(flat.isnan().sum()) / count, float(flat.isinf().sum()) / count
        finite = flat[flat.isfinite()] if nan or inf else flat
        if finite.numel() == 0:
            return InputStats(0.0, 0.0, 0.0, 0.0, 0.0, nan, inf)
        low, high = (float(x) for x in torch.aminmax(finite))
        some = finite[:: max(1, finite.numel() // _SAMPLE)].double()
        zeros = float((some == 0).double().mean())
        return InputStats(low, high, float(some.mean()), float(some.std(unbiased=False)), zeros, nan, inf)


def _distinct(value: torch.Tensor) -> torch.Tensor:
    """The elements of a strided tensor, an expanded dimension once."""
    for dim, stride in enumerate(value.stride()):
        if stride == 0 and value.shape[dim] > 1:
            value = value.narrow(dim, 0, 1)
    return value.detach().reshape(-1)


def _wider(a: InputStats, b: InputStats) -> InputStats:
    return InputStats(min(a.low, b.low), max(a.high, b.high), a.mean, a.std, a.zeros, a.nan, a.inf)
