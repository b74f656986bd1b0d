"""``capture``: a call of somebody's model → Workload."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import torch

from ..exc import CaptureError
from ..kernels.region import Region
from . import devices, roofline
from .cuda_clock import CudaClock
from .graph import SplitGraph, Step
from .intact import Inputs, modules_of, own_rng, untouched
from .ops import FUSIBLE, Kind, is_known_heavy
from .profile import Clock, repeat
from .trace import GraphBackend, break_reasons, through
from .workload import Roofs, VendorOp, Workload, WorkloadRegion, region_ceiling

_STEP_LIMIT_S: Final = 2.0
_PROFILE_LIMIT_S: Final = 4.0
_ALONE_LIMIT_S: Final = 3.0
_ALONE_PASSES: Final = 3
_LEVELS: Final = ("region", "op")
_WORDS_MOST: Final = 600

# One call site and what the step pays for it, in µs.
Cost: TypeAlias = tuple[Step, float]


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    target: str = "cpu",
    level: str = "region",
) -> Workload:
    """Run ``function(*args, **kwargs)`` a few times and say what it is made of and where its time goes.

    Works on private copies of the arguments and restores the module's buffers, attributes and every
    RNG. Gradients are not recorded. What cannot be captured is listed in ``Workload.uncaptured``.

    Raises CaptureError when ``level`` is unknown, the call itself fails or runs on another device than
    ``target``, NoDeviceError when that device cannot be used.
    """
    if level not in _LEVELS:
        raise CaptureError(f"level {level!r} is unknown.", f"Use one of {', '.join(_LEVELS)}.")
    if not callable(function):
        raise CaptureError(f"{type(function).__name__} cannot be called.", "Give a module or a function.")
    devices.check(function, args, kwargs or {}, target)
    inputs = Inputs(args, kwargs or {})
    if inputs.uncopied:
        _refuse_streams((*args, *(kwargs or {}).values()))
    with devices.entered(args, kwargs or {}, target):
        return _capture(function, inputs, target, level)


def _capture(function: Callable[..., Any], inputs: Inputs, target: str, level: str) -> Workload:
    notes: list[str] = []
    with own_rng():
        roofs = roofline.measure(target=target)
    if inputs.uncopied:
        notes.append(f"arguments could not be copied, every run gets the same objects: {inputs.uncopied}")
    with untouched(function), inference(function, notes):
        step_ms = _time_step(function, inputs, target)
        clock = Clock(looking=True)
        backend = GraphBackend(clock.dress, target, level)
        compiled = through(function, backend)
        total_s = _profile(compiled, inputs, clock, backend, notes)
    samples = clock.samples()
    # On a GPU the host's clock around each call is no part of what the step takes: the step itself is.
    whole_us = total_s * 1e6 if target == "cpu" else step_ms * 1e3 * (total_s > 0)
    busy = min(1.0, sum(s.device_us for s in samples) / max(whole_us, 1e-3)) if whole_us else 0.0
    costs = [(s.step, s.cost_us(busy)) for s in samples]
    whole_us = max(whole_us, sum(cost for _, cost in costs))
    regions = _regions(backend.graphs, clock, costs, whole_us, roofs)
    vendor = _vendor(costs, whole_us)
    uncaptured = (*notes, *backend.notes, *_left_out(backend.graphs))
    return Workload(
        title=_title(function),
        target=target,
        level=level,
        step_ms=step_ms,
        busy=busy,
        regions=regions,
        vendor=vendor,
        uncaptured=tuple(dict.fromkeys(uncaptured)),
        roofs=roofs,
    )


def _refuse_streams(arguments: tuple[Any, ...]) -> None:
    """Raise CaptureError for an argument that can be read only once, and would be lost to the person."""
    for value in arguments:
        if isinstance(value, Iterator):
            raise CaptureError(
                f"An argument is a {type(value).__name__}, which can be read only once.",
                "Give the model a list or a tensor, so that the call can be repeated.",
            )


@contextlib.contextmanager
def inference(function: Callable[..., Any], notes: list[str] | None = None) -> Iterator[None]:
    """The grad mode a call is captured and measured in: the person's own, but without recording."""
    records = torch.is_grad_enabled() and any(
        p.requires_grad for module in modules_of(function) for p in module.parameters()
    )
    if records and notes is not None:
        notes.append("captured without gradients: the model's parameters ask for them, training comes later")
    with torch.no_grad() if torch.is_grad_enabled() else contextlib.nullcontext():
        yield


def _time_step(function: Callable[..., Any], inputs: Inputs, target: str) -> float:
    def once() -> float:
        args, kwargs = inputs.take()
        devices.settle(target)
        start = time.perf_counter()
        function(*args, **kwargs)
        devices.settle(target)
        return time.perf_counter() - start

    try:
        once()
    except (Exception, SystemExit) as error:
        raise CaptureError(
            f"The model raised {_in_short(error)}.", "Make the call work without kernelforge first."
        ) from error
    inputs.note_mutation()
    return sorted(taken := repeat(once, _STEP_LIMIT_S))[len(taken) // 2] * 1e3


def _profile(
    compiled: Callable[..., Any], inputs: Inputs, clock: Clock, backend: GraphBackend, notes: list[str]
) -> float:
    """Median seconds of the instrumented call; 0.0 (with a note) when it cannot be traced at all."""
    target = backend.device

    def once() -> float:
        args, kwargs = inputs.take()
        devices.settle(target)
        start = time.perf_counter()
        compiled(*args, **kwargs)
        devices.settle(target)
        return time.perf_counter() - start

    try:
        with break_reasons(notes):
            once()
        clock.looking = False
        once()
        clock.forget()
        taken = repeat(once, _PROFILE_LIMIT_S)
        if target == "cuda":
            clock.alone = CudaClock()
            end = time.perf_counter() + _ALONE_LIMIT_S
            for _ in range(_ALONE_PASSES):
                once()
                if time.perf_counter() > end:
                    break
    except Exception as error:  # noqa: BLE001 - Dynamo raises anything; the person's own call works
        reason = str(error).strip().split("\n")[0]
        notes.append(f"the call could not be traced: {type(error).__name__}: {reason}")
        backend.graphs.clear()
        return 0.0
    return sorted(taken)[len(taken) // 2]


def _regions(
    graphs: list[SplitGraph], clock: Clock, costs: list[Cost], whole_us: float, roofs: Roofs
) -> tuple[WorkloadRegion, ...]:
    found: dict[str, Region] = {}
    for split in graphs:
        found |= split.regions
    times: dict[str, list[float]] = {}
    for step, cost_us in costs:
        if step.region is not None:
            times.setdefault(step.region.hash, []).append(cost_us)
    rows = []
    for name, region in found.items():
        taken = times.get(name, [])
        mean_us = sum(taken) / len(taken) if taken else 0.0
        share = sum(taken) / whole_us if whole_us else 0.0
        floor = roofline.floor_us(region, roofs)
        reason = clock.wrong.get(name, "") or _ineligible(region, taken)
        rows.append(
            WorkloadRegion(
                region=region,
                count=len(taken),
                time_us=mean_us,
                share=share,
                floor_us=floor,
                ceiling=region_ceiling(mean_us, floor, roofs.call_us),
                eligible=not reason,
                reason=reason,
                stats=clock.stats.get(name, ()),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.share * row.headroom, -row.share)))


def _ineligible(region: Region, taken: list[float]) -> str:
    if not taken:
        return "traced but not reached by this call"
    if any(spec.numel == 0 for spec in region.outputs):
        return "an output is empty"
    if any(spec.distinct_numel != spec.numel for spec in region.outputs):
        return "an output overlaps itself"
    return ""


def _vendor(costs: list[Cost], whole_us: float) -> tuple[VendorOp, ...]:
    times: dict[str, list[float]] = {}
    for step, cost_us in costs:
        if step.kind is Kind.HEAVY and step.region is None:
            times.setdefault(step.name, []).append(cost_us)
    rows = [
        VendorOp(name, len(taken), sum(taken) / len(taken), sum(taken) / whole_us)
        for name, taken in times.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.share))


def _left_out(graphs: list[SplitGraph]) -> list[str]:
    kept: Counter[str] = Counter()
    for split in graphs:
        kept.update(f"{target} stays on PyTorch: {reason}" for target, reason in split.kept)
        for step in split.steps:
            if step.kind is Kind.RANDOM and "getitem" not in step.name:
                kept[f"{step.name} stays on PyTorch: random op"] += 1
            elif step.kind is Kind.HEAVY and step.region is None and not _is_known(step.name):
                kept[f"{step.name} stays on PyTorch: not in the operator table"] += 1
    return [text + (f" (×{count})" if count > 1 else "") for text, count in kept.items()]


def _in_short(error: BaseException) -> str:
    """Type and first words: an exception may carry a whole tensor."""
    words = f"{type(error).__name__}: {error}".rstrip(" .:")
    return words if len(words) <= _WORDS_MOST else f"{words[:_WORDS_MOST]} …"


def _is_known(target: str) -> bool:
    return is_known_heavy(target) or "getitem" in target or target in FUSIBLE


def _title(function: Callable[..., Any]) -> str:
    if isinstance(function, torch.nn.Module):
        return type(function).__name__
    owners = modules_of(function)
    return type(owners[0]).__name__ if owners else getattr(function, "__name__", type(function).__name__)
