"""A call through Dynamo and aot_autograd, with every graph of it handed to us cut into regions."""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters

from .graph import Boxed, SplitGraph

_serial = itertools.count()


@dataclass
class GraphBackend:
    """A Dynamo backend that splits each inference graph and runs what ``build`` makes of it.

    Graphs of a training step keep PyTorch's own calls. Nothing that goes wrong here may cost the
    person their result: a graph we cannot split also runs as it is, and ``notes`` says why (``strict``
    raises instead).
    """

    build: Callable[[SplitGraph], Boxed]
    device: str = "cpu"
    level: str = "region"
    strict: bool = False
    graphs: list[SplitGraph] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        compiler = aot_autograd(
            fw_compiler=self._training, bw_compiler=_as_is, inference_compiler=self._inference
        )
        with _eager_resampling():
            compiled: Callable[..., Any] = compiler(module, inputs)
        return compiled

    def _inference(self, module: fx.GraphModule, _: Sequence[Any]) -> Boxed:
        context = torch._guards.TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        static = metadata.static_input_indices if metadata is not None else []
        try:
            split = SplitGraph.split(module, static, device=self.device, level=self.level)
            built = self.build(split)
        except Exception as error:  # whatever went wrong, the model must run
            if self.strict:
                raise
            self.notes.append(f"a graph was left to PyTorch: {type(error).__name__}: {error}")
            return _as_is(module, ())
        self.graphs.append(split)
        return built

    def _training(self, module: fx.GraphModule, _: Sequence[Any]) -> Boxed:
        self.notes.append("a graph that records gradients was left to PyTorch (training comes later)")
        return _as_is(module, ())


def through(function: Callable[..., Any], backend: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` compiled by ``backend``, in a code object of its own.

    Dynamo keeps its cache, and counts recompilations towards its limit, per code object. A private one
    leaves the person's own ``torch.compile`` cache alone, and ours is freed with the callable.
    """

    def step(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    name = f"forged_step_{next(_serial)}"
    own = types.FunctionType(
        step.__code__.replace(co_name=name), step.__globals__, name, None, step.__closure__
    )
    compiled: Callable[..., Any] = torch.compile(own, backend=backend, dynamic=False)
    return compiled


@contextlib.contextmanager
def break_reasons(into: list[str]) -> Iterator[None]:
    """Collect why Dynamo broke the graph while inside, one sentence a reason."""
    before = counters["graph_break"].copy()
    yield
    for reason, count in (counters["graph_break"] - before).items():
        text = " ".join(str(reason).split("\n")[0].split())
        into.append(f"graph break: {text}" + (f" (×{count})" if count > 1 else ""))


def _as_is(module: fx.GraphModule, _: Sequence[Any]) -> Boxed:
    def run(args: list[Any]) -> Any:
        inputs = list(args)
        args.clear()
        return module(*inputs)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


# torch replaces these by index arithmetic while tracing; on the CPU the gather it leaves behind takes
# 3.3 times as long as the operator eager calls (nearest, 128x64x64 doubled: 2.35 against 0.70 ms).
_RESAMPLING: Final = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d upsample_bicubic2d"
).split()


@contextlib.contextmanager
def _eager_resampling() -> Iterator[None]:
    """While tracing, resampling stays the operator that eager runs. Dynamo's compile lock is held here."""
    saved = []
    for name in _RESAMPLING:
        for overload in ("vec", "default"):
            operator = getattr(getattr(torch.ops.aten, name, None), overload, None)
            if operator is None:
                continue
            kernels = {key: operator.py_kernels[key] for key in _DECOMPOSING if key in operator.py_kernels}
            for key in kernels:
                del operator.py_kernels[key]
            operator._dispatch_cache.clear()
            saved.append((operator, kernels))
    try:
        yield
    finally:
        for operator, kernels in saved:
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


_DECOMPOSING: Final = (
    torch._C.DispatchKey.CompositeImplicitAutograd,
    torch._C.DispatchKey.Autograd,
)
