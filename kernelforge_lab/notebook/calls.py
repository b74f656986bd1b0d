"""Notice the outermost ``nn.Module`` calls while some code runs, without changing what they compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Autocast:
    """The autocast state of a call: device type and dtype name."""

    device: str
    dtype: str


@dataclass(frozen=True)
class ModelCall:
    """The longest outermost call of one module, with its real arguments and the modes it ran under.

    ``total_s`` and ``count`` are over all outermost calls of the module.
    """

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grad: bool
    inference: bool
    autocast: Autocast | None
    seconds: float
    total_s: float
    count: int

    @property
    def name(self) -> str:
        return type(self.module).__name__


@dataclass
class _Seen:
    call: ModelCall
    total_s: float = 0.0
    count: int = 0


@dataclass
class Noticed:
    """What was called, by module, in the order of first calls."""

    _seen: dict[int, _Seen] = field(default_factory=dict)

    def note(self, call: ModelCall) -> None:
        seen = self._seen.setdefault(id(call.module), _Seen(call))
        seen.total_s += call.seconds
        seen.count += 1
        if call.seconds >= seen.call.seconds:
            seen.call = call

    @property
    def calls(self) -> list[ModelCall]:
        """One call per module, the module that took most time first."""
        import dataclasses

        calls = [dataclasses.replace(s.call, total_s=s.total_s, count=s.count) for s in self._seen.values()]
        return sorted(calls, key=lambda c: -c.total_s)


@contextmanager
def notice_calls() -> Iterator[Noticed]:
    """Record outermost module calls made inside the block.

    ``nn.Module.__call__`` is wrapped only until a call begins and restored while it runs: inner modules
    (and Dynamo, when the module is compiled) meet the original, so they cost and compute what they always do.
    Calls from other threads during that time are not noticed.
    """
    import torch
    from torch import nn

    noticed = Noticed()
    original = nn.Module.__call__
    owner = threading.RLock()

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not owner.acquire(blocking=False):
            return original(module, *args, **kwargs)
        try:
            nn.Module.__call__ = original  # type: ignore[method-assign]
            modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), _autocast())
            start = time.perf_counter()
            result = original(module, *args, **kwargs)
            seconds = time.perf_counter() - start
            noticed.note(ModelCall(_unwrapped(module), args, kwargs, *modes, seconds, seconds, 1))
            return result
        finally:
            nn.Module.__call__ = call  # type: ignore[method-assign]
            owner.release()

    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield noticed
    finally:
        nn.Module.__call__ = original  # type: ignore[method-assign]


def _unwrapped(module: nn.Module) -> nn.Module:
    """The person's module inside a ``torch.compile`` wrapper."""
    inner = getattr(module, "_orig_mod", None)
    return inner if inner is not None else module


def _autocast() -> Autocast | None:
    import torch

    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return Autocast(device, str(torch.get_autocast_dtype(device)).removeprefix("torch."))
    return None
