"""Running somebody's model many times without leaving a trace: inputs, buffers, attributes, RNG."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn

_PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


class Inputs:
    """Private copies of a call's arguments, so that a model that writes into them hurts nobody.

    The tensors of one copy serve every run until a run is seen to change them (or may have: an
    argument such as a key-value cache); from then on each run gets its own.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._shared: dict[int, Any] = {id(m): m for m in find(nn.Module, (args, kwargs))}
        for module in list(self._shared.values()):
            self._shared.update((id(t), t) for t in (*module.parameters(), *module.buffers()))
        try:
            self._pristine = copy.deepcopy((args, dict(kwargs)), dict(self._shared))
        except Exception:  # noqa: BLE001 - what cannot be copied (a generator, a file) is used as it is
            self._pristine = (args, dict(kwargs))
            self._shared.update((id(x), x) for x in find(object, (args, kwargs)))
        self._tensors = list(find(torch.Tensor, self._pristine))
        self._reuse = _is_plain(self._pristine)
        self._versions = self._stamp()

    def take(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments for one run."""
        if self._reuse and self._stamp() == self._versions:
            memo = dict(self._shared) | {id(t): t for t in self._tensors}
            taken: tuple[tuple[Any, ...], dict[str, Any]] = copy.deepcopy(self._pristine, memo)
            return taken
        return copy.deepcopy(self._pristine, dict(self._shared))

    def note_mutation(self) -> bool:
        """True when the runs so far wrote into the tensors; later runs then get fresh ones."""
        if self._stamp() == self._versions:
            return False
        self._reuse = False
        return True

    def _stamp(self) -> list[int]:
        return [0 if t.is_inference() else t._version for t in self._tensors]


@contextlib.contextmanager
def untouched(function: Callable[..., Any]) -> Iterator[None]:
    """Restore buffers and plain attributes of the modules ``function`` uses, and every RNG, at the end."""
    modules = {id(m): m for owner in modules_of(function) for m in owner.modules()}.values()
    buffers = {id(b): (b, b.detach().clone()) for m in modules for b in m.buffers(recurse=False)}
    state = [(m, dict(m.__dict__), dict(m._buffers), dict(m._parameters)) for m in modules]
    python, numpy = random.getstate(), sys.modules.get("numpy")
    numbers = numpy.random.get_state() if numpy is not None else None
    with own_rng():
        try:
            yield
        finally:
            for module, attributes, own_buffers, own_parameters in state:
                _restore(module.__dict__, attributes)
                _restore(module._buffers, own_buffers)
                _restore(module._parameters, own_parameters)
            with torch.no_grad():
                for buffer, value in buffers.values():
                    if not _same(buffer, value):
                        buffer.copy_(value)
            random.setstate(python)
            if numpy is not None:
                numpy.random.set_state(numbers)


@contextlib.contextmanager
def own_rng() -> Iterator[None]:
    """Torch's random numbers, on the host and on every GPU in use, are afterwards what they were."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=list(gpus)):
        yield


def modules_of(function: Callable[..., Any]) -> list[nn.Module]:
    """Modules a callable is, is bound to, closes over or names as a global."""
    if isinstance(function, nn.Module):
        return [function]
    found: list[Any] = [getattr(function, "__self__", None)]
    code = getattr(function, "__code__", None)
    if code is not None:
        for cell in getattr(function, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # not assigned yet
                found.append(cell.cell_contents)
        scope = getattr(function, "__globals__", {})
        found += [scope[name] for name in code.co_names if name in scope]
    found += [getattr(function, "args", ()), getattr(function, "func", None)]  # functools.partial
    return list(find(nn.Module, found, depth=3))


def _restore(now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in [name for name in now if name not in before]:
        del now[name]
    for name, value in before.items():
        if name not in now or now[name] is not value:
            now[name] = value


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))


def find(kind: type, value: Any, depth: int = 6) -> Iterator[Any]:
    """Instances of ``kind`` in nested containers and plain objects (never inside Python modules)."""
    if issubclass(type(value), kind):  # isinstance asks value.__class__, which may be anybody's property
        yield value
    if depth == 0 or issubclass(type(value), (*_PLAIN, torch.Tensor, nn.Module, type, ModuleType)):
        return
    if isinstance(value, Mapping):
        items: Any = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        items = list(value)
    else:
        items = list(vars(value).values()) if hasattr(value, "__dict__") and not callable(value) else []
    for item in items:
        yield from find(kind, item, depth - 1)


def _is_plain(value: Any) -> bool:
    """True for tensors and numbers in tuples, lists and dicts: things that cannot change unseen."""
    if isinstance(value, (*_PLAIN, torch.Tensor, nn.Module)):
        return True
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return type(value) is dict and all(map(_is_plain, value.values()))
