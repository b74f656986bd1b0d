"""A captured graph cut into regions, and the lean callable made from it again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import fx

from ..kernels.region import Region
from .dedupe import merge_equal_calls
from .printer import Boxed, Implement, Implementation, Printer, Wrap
from .regions import cut
from .schedule import Step, schedule

__all__ = ["Boxed", "Implement", "Implementation", "SplitGraph", "Step", "Wrap"]


@dataclass(frozen=True, eq=False)
class SplitGraph:
    """Steps in an order that respects data flow and stays close to the model's own.

    ``kept`` pairs an operator that could have been in a region with the reason why it is not.
    """

    module: fx.GraphModule
    steps: tuple[Step, ...]
    kept: tuple[tuple[str, str], ...]

    @classmethod
    def split(
        cls,
        module: fx.GraphModule,
        static: Iterable[int] = (),
        *,
        device: str = "cpu",
        level: str = "region",
    ) -> SplitGraph:
        """Cut a functional ATen graph whose nodes carry fake values in ``meta["val"]``.

        Equal calls are merged first, in place. ``static`` are positions of the inputs that hold
        parameters or buffers, ``level`` is ``region`` or ``op`` (every call its own region).
        """
        with _without_collector():
            merge_equal_calls(module.graph)
            placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
            fixed = [placeholders[i] for i in static if i < len(placeholders)]
            parts = cut(module.graph, fixed, device, by_op=level == "op")
            kept = tuple((str(node.target), reason) for node, reason in parts.kept.items())
            return cls(module, tuple(schedule(module.graph, parts)), kept)

    @property
    def regions(self) -> dict[str, Region]:
        """Distinct regions by hash, in order of first use."""
        return {step.region.hash: step.region for step in self.steps if step.region is not None}

    def build(self, implement: Implement, wrap: Wrap | None = None) -> Boxed:
        """What a forged model runs: takes a list of the graph's inputs, empties it, returns its outputs.

        Straight-line Python in which a region is one positional call and everything else the ATen call
        that eager would have made. ``implement(region)`` gives the callable to use for a region (tensors
        in, tuple of tensors out) or None for stock; it is asked once per distinct region.
        ``wrap(callable, step)`` may dress any call that is not a view (the profiler's clock).
        """
        return Printer(self.module, self.steps, implement, wrap).compile()


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Tracing leaves millions of objects; one full collection on the way costs more than the cut (0.8 s)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
