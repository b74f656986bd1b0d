"""The forged step as CUDA graphs: one replay instead of a launch for every kernel, one graph per shape."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from .counts import Counts

_GRAPHS_MAX: Final = 8  # each keeps the memory of a whole step
_WARM_CALLS: Final = 3  # compilation, the kernels' shadow calls and the allocator come before a capture
_PLAIN: Final = (bool, int, float, str, type(None), torch.dtype, torch.device)


@dataclass(frozen=True)
class _Recorded:
    """A captured step. ``inputs`` are the tensors it reads, ``outputs`` those it writes."""

    graph: torch.cuda.CUDAGraph
    inputs: list[torch.Tensor]
    outputs: list[Any]
    shape: pytree.TreeSpec
    bytes: int


class Graphed:
    """``step`` by replay. Inputs are copied in and outputs out, so results are the caller's own.

    A step that cannot be captured, an argument that is neither tensor nor plain value, and shapes beyond the
    first eight run ``step`` itself, counted. Autocast is part of what a graph is recorded for.
    """

    def __init__(self, step: Callable[..., Any], counts: Counts) -> None:
        self._step = step
        self._counts = counts
        self._lock = threading.Lock()
        self._recorded: dict[Any, _Recorded | str] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.tree_flatten((args, kwargs))
        key = self._key(leaves, tree)
        if isinstance(key, str):
            return self._plainly(key, args, kwargs)
        with self._lock:  # inputs and outputs of a graph are one call's at a time
            found = self._recorded.get(key)
            if found is None:
                found = self._recorded[key] = self._record(leaves, tree)
            if isinstance(found, str):
                return self._plainly(found, args, kwargs)
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            for static, live in zip(found.inputs, tensors, strict=True):
                static.copy_(live)
            found.graph.replay()
            outputs = [o.clone() if isinstance(o, torch.Tensor) else o for o in found.outputs]
            self._counts.hit()
        return pytree.tree_unflatten(outputs, found.shape)

    def notes(self) -> list[str]:
        """What was recorded and the memory it holds."""
        kept = [found for found in self._recorded.values() if isinstance(found, _Recorded)]
        reasons = [found for found in self._recorded.values() if isinstance(found, str)]
        size = sum(found.bytes for found in kept) / 2**20
        said = [f"{len(kept)} CUDA graph{'s' if len(kept) != 1 else ''} of the step hold {size:.0f} MiB"]
        return [*(said if kept else []), *reasons]

    def _plainly(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._counts.miss(reason)
        return self._step(*args, **kwargs)

    def _key(self, leaves: list[Any], tree: pytree.TreeSpec) -> Any:
        parts: list[Any] = [str(tree), torch.is_autocast_enabled("cuda"), torch.is_inference_mode_enabled()]
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                if not leaf.is_cuda:
                    return "no CUDA graph: an input is not on a GPU"
                parts.append((tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device))
            elif isinstance(leaf, _PLAIN):
                parts.append(leaf)
            else:
                return f"no CUDA graph: an argument is a {type(leaf).__name__}"
        return tuple(parts)

    def _record(self, leaves: list[Any], tree: pytree.TreeSpec) -> _Recorded | str:
        if len(self._recorded) >= _GRAPHS_MAX:
            return f"no CUDA graph: there are {_GRAPHS_MAX} already"
        own = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        inputs = [leaf for leaf in own if isinstance(leaf, torch.Tensor)]
        args, kwargs = pytree.tree_unflatten(own, tree)
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        numbers = generator.clone_state()
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_WARM_CALLS):
                    self._step(*args, **kwargs)
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            before = torch.cuda.memory_reserved()
            versions = [tensor._version for tensor in inputs]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = self._step(*args, **kwargs)
            if versions != [tensor._version for tensor in inputs]:
                return "no CUDA graph: the step writes into its inputs"
        except Exception as error:  # noqa: BLE001 - the step itself still runs
            torch.cuda.synchronize()
            generator.graphsafe_set_state(numbers)  # a capture that failed leaves it waiting for the end
            return f"no CUDA graph: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
        outputs, shape = pytree.tree_flatten(result)
        return _Recorded(graph, inputs, outputs, shape, torch.cuda.memory_reserved() - before)
