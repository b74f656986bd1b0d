"""Kernels in a training step: the regions of aot_autograd's forward and backward graphs.

A backward region is a region like any other, so it is searched, judged against its float64 oracle and guarded
in the same way. Whether a forged step is kept is decided by the step: its gradients against float64 autograd,
its time against eager's.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx, nn

from ..capture.devices import settle
from ..capture.graph import Boxed, SplitGraph
from ..capture.intact import Inputs, find, own_rng, untouched
from ..capture.trace import through
from ..events import GuardCounts
from ..kernels.region import Region
from .counts import Counts
from .install import Installer
from .measure import Race, race
from .reference import compare
from .winner import Winner

_SHADOW_STEPS: Final = 2
Loss = Callable[[Any], torch.Tensor]


@dataclass
class TrainingBackend:
    """A Dynamo backend that cuts forward and backward graphs alike. A graph it cannot cut runs as it is."""

    build: Callable[[SplitGraph], Boxed]
    device: str = "cpu"
    level: str = "region"
    forward: list[SplitGraph] = field(default_factory=list)
    backward: list[SplitGraph] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition

        compiler = aot_autograd(
            fw_compiler=lambda graph, _: self._cut(graph, self.forward),
            bw_compiler=lambda graph, _: self._cut(graph, self.backward),
            # What is cheap to compute again is not kept for the backward pass: regions have fewer results.
            partition_fn=min_cut_rematerialization_partition,
        )
        compiled: Callable[..., Any] = compiler(module, inputs)
        return compiled

    def _cut(self, module: fx.GraphModule, into: list[SplitGraph]) -> Boxed:
        try:
            split = SplitGraph.split(module, device=self.device, level=self.level)
            built = self.build(split)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the step must run
            self.notes.append(f"a graph was left to PyTorch: {type(error).__name__}: {error}")
            split = SplitGraph.split(module, device="none", level=self.level)  # no region lives there
            return split.build(lambda _: None)
        into.append(split)
        return built


def training_regions(
    model: nn.Module, args: tuple[Any, ...], loss: Loss, *, target: str = "cpu"
) -> dict[str, list[tuple[Region, int]]]:
    """``forward`` and ``backward`` regions of one step, each with how often it occurs."""
    backend = TrainingBackend(lambda split: split.build(lambda _: None), target)
    with untouched(model), _own_gradients(model):
        _step(through(model, backend), args, loss)
    return {"forward": _counted(backend.forward), "backward": _counted(backend.backward)}


def _counted(graphs: Sequence[SplitGraph]) -> list[tuple[Region, int]]:
    counts = Counter(step.region.hash for graph in graphs for step in graph.steps if step.region is not None)
    regions = {name: region for graph in graphs for name, region in graph.regions.items()}
    return [(region, counts[name]) for name, region in regions.items()]


@dataclass(frozen=True)
class StepVerdict:
    """Of one training step. ``worst`` is the largest gradient's error over its bound (judging.md)."""

    equal: bool
    worst: float
    race: Race | None
    message: str

    @property
    def installed(self) -> bool:
        return self.equal and self.race is not None and self.race.low > 1.0


class ForgedTraining:
    """The model with kernels in its forward and backward pass, or the model itself when not ``installed``.

    Call it where the model is called; its parameters are the model's.
    """

    def __init__(
        self, original: nn.Module, compiled: Callable[..., Any], verdict: StepVerdict, counts: Counts
    ) -> None:
        self.original = original
        self.compiled = compiled
        self.verdict = verdict
        self._counts = counts

    @property
    def model(self) -> Callable[..., Any]:
        """What to call: the forged model when the A/B was won, else the original."""
        return self.compiled if self.verdict.installed else self.original

    def counts(self) -> GuardCounts:
        return self._counts.as_event()


def apply_training(
    model: nn.Module,
    args: tuple[Any, ...],
    winners: Mapping[str, Winner],
    loss: Loss,
    *,
    target: str = "cpu",
    limit_s: float = 20.0,
) -> ForgedTraining:
    """Put ``winners`` into a training step of ``model`` and decide by A/B whether it stays.

    ``loss`` maps the model's output to a scalar. Gradients are compared with those of a float64 copy; the
    model's parameters, buffers and gradients are as before when this returns.
    """
    counts = Counts()
    installer = Installer(dict(winners), target, _SHADOW_STEPS, counts=counts)
    compiled = through(model, TrainingBackend(installer.build, target))
    with untouched(model), _own_gradients(model):
        for _ in range(_SHADOW_STEPS + 1):
            _step(compiled, args, loss)
        if installer.installed:
            verdict = _judge(model, compiled, args, loss, target=target, limit_s=limit_s)
        else:
            verdict = StepVerdict(True, 0.0, None, "Not installed: no winner's region occurs in the step.")
    return ForgedTraining(model, compiled, verdict, counts)


def _judge(
    model: nn.Module,
    compiled: Callable[..., Any],
    args: tuple[Any, ...],
    loss: Loss,
    *,
    target: str,
    limit_s: float,
) -> StepVerdict:
    worst, equal = compare(
        gradients(model, model, args, loss),
        gradients(model, compiled, args, loss),
        exact_gradients(model, args, loss),
    )
    if not equal:
        return StepVerdict(
            False, worst, None, f"Not installed: a gradient is {worst:.3g} times the bound off."
        )
    result = race(_timed(model, args, loss, target), _timed(compiled, args, loss, target), limit_s)
    said = f"{result.ratio:.2f}x ({result.low:.2f}–{result.high:.2f}) a training step"
    if result.low > 1.0:
        return StepVerdict(True, worst, result, f"Installed: {said}.")
    return StepVerdict(True, worst, result, f"Not installed: {said} is not surely faster than PyTorch.")


def gradients(
    model: nn.Module, function: Callable[..., Any], args: tuple[Any, ...], loss: Loss
) -> list[torch.Tensor]:
    """Gradients of ``model``'s parameters after one step through ``function``; its own are left alone."""
    with _own_gradients(model):
        _step(function, args, loss)
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def exact_gradients(model: nn.Module, args: tuple[Any, ...], loss: Loss) -> list[torch.Tensor]:
    """The same by a float64 copy of the model."""
    double = copy.deepcopy(model).double()
    own, _ = Inputs(args, {}).take()
    upcast = tuple(t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in own)
    return gradients(double, double, upcast, loss)


def _step(function: Callable[..., Any], args: tuple[Any, ...], loss: Loss) -> None:
    own, _ = Inputs(args, {}).take()
    with own_rng(), torch.enable_grad():
        loss(function(*own)).backward()


def _timed(
    function: Callable[..., Any], args: tuple[Any, ...], loss: Loss, target: str
) -> Callable[[], float]:
    def once() -> float:
        settle(target)
        start = time.perf_counter()
        _step(function, args, loss)
        settle(target)
        return time.perf_counter() - start

    return once


@contextmanager
def _own_gradients(model: nn.Module) -> Iterator[None]:
    """Gradients made inside are dropped; those from before come back."""
    before = [(p, p.grad) for p in find(nn.Parameter, list(model.parameters()))]
    for parameter, _ in before:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, grad in before:
            parameter.grad = grad
