"""The rooms of the house that a run joins, loaded when the run starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .options import Options
from .search.judge import Judge
from .search.memory import Memory

if TYPE_CHECKING:
    from .capture import Workload
    from .deploy.apply import Forged
    from .proposers.base import Proposer


def _capture(*args: Any, **kwargs: Any) -> Workload:
    from .capture import capture

    return capture(*args, **kwargs)


def _target(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    from .capture.devices import target_of

    return target_of(function, args, kwargs)


def _judge(options: Options) -> Judge:
    from .judge.farm import JudgeFarm
    from .judge.several import local_judge

    if options.executor is not None:
        return JudgeFarm(options.target, options.executor)
    judge: Judge = local_judge(options.target)
    return judge


def _places(options: Options) -> Callable[[], int]:
    from .judge.farm import places

    if options.executor is None and options.target == "cuda":
        from .judge.several import visible_gpus

        count = max(1, len(visible_gpus()))
        return lambda: count
    return places(options.executor)


def _memory(options: Options, run: str) -> Memory | None:
    from .library import open_library

    return open_library(options.target, run) if options.library else None


def _proposers(options: Options) -> list[Proposer]:
    from .proposers.catalogue import make

    return make(options.proposers, options.target)


def _apply(*args: Any, **kwargs: Any) -> Forged:
    from .deploy.apply import apply

    return apply(*args, **kwargs)


def _device(options: Options) -> tuple[str, int]:
    from . import targets

    info = targets.get(options.target).device()
    return info.name, info.threads


@dataclass(frozen=True)
class Rooms:
    """Capture, judge, proposers, deployment and the device (its name and threads). Tests put fakes here.

    ``target`` says where a call runs when the options leave that open, ``memory`` is the library of
    proven kernels, ``places`` tells how many kernels the judge takes at once.
    """

    capture: Callable[..., Workload] = _capture
    judge: Callable[[Options], Judge] = _judge
    proposers: Callable[[Options], list[Proposer]] = _proposers
    apply: Callable[..., Forged] = _apply
    device: Callable[[Options], tuple[str, int]] = _device
    target: Callable[..., str] = _target
    memory: Callable[[Options, str], Memory | None] = _memory
    places: Callable[[Options], Callable[[], int]] = _places
