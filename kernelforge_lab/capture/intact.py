"""Running somebody's model many times without leaving a trace: inputs, buffers, attributes, RNG."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn

_PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_CONTAINERS = (list, dict, set, deque)


class Inputs:
    """Private copies of a call's arguments, so that a model that writes into them hurts nobody.

    The tensors of one copy serve every run until a run is seen to change them (or may have: an
    argument such as a key-value cache); from then on each run gets its own. ``uncopied`` says why there
    are no copies ("" when there are): every run then gets the person's own objects.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._shared: dict[int, Any] = {id(m): m for m in find(nn.Module, (args, kwargs))}
        for module in list(self._shared.values()):
            self._shared.update((id(t), t) for t in (*module.parameters(), *module.buffers()))
        self.uncopied = ""
        try:
            self._pristine = copy.deepcopy((args, dict(kwargs)), dict(self._shared))
        except Exception as error:  # noqa: BLE001 - what cannot be copied (a file, a lock) is used as it is
            self.uncopied = str(error) or type(error).__name__
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
    """Restore buffers, attributes, containers of the modules ``function`` uses and every RNG at the end."""
    modules = {id(m): m for owner in modules_of(function) for m in owner.modules()}.values()
    buffers = {id(b): (b, b.detach().clone()) for m in modules for b in m.buffers(recurse=False)}
    state = [(m, dict(m.__dict__), dict(m._buffers), dict(m._parameters)) for m in modules]
    held = [(c, copy.copy(c)) for m in modules for c in _containers(list(m.__dict__.values()))]
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
            for container, before in held:
                _refill(container, before)
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


def _containers(value: Any, depth: int = 3) -> Iterator[Any]:
    """Lists, dicts, sets and deques that an attribute is or holds: what a forward may append to."""
    for item in value.values() if isinstance(value, dict) else value:
        if type(item) in _CONTAINERS:
            yield item
            if depth > 1 and type(item) is not set:
                yield from _containers(item, depth - 1)


def _refill(container: Any, before: Any) -> None:
    """Put back what was in it, unless it still is."""
    now, then = (list(c.items() if isinstance(c, dict) else c) for c in (container, before))
    flat = zip(now, then, strict=False)
    if len(now) == len(then) and all(
        (a[0] is b[0] and a[1] is b[1]) if isinstance(container, dict) else a is b for a, b in flat
    ):
        return
    container.clear()
    (container.extend if isinstance(container, (list, deque)) else container.update)(before)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Bit for bit: NaN is itself, and there are dtypes (fp8) that know no comparison."""
    if a.shape != b.shape or a.layout != torch.strided:
        return False
    one, other = (_bytes(t.detach()) for t in (a, b))
    return torch.equal(one, other)


def _bytes(value: torch.Tensor) -> torch.Tensor:
    return value.resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8)


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
