"""A loaded cuda kernel: its module in torch's context, its workspaces, and calls prepared for speed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..exc import CompileError, KernelSourceError
from ..kernels.format import ResolvedLaunch
from ..kernels.spec import itemsize_bytes
from .base import Built
from .cubin import Function, read_cubin
from .cuda_device import driver, entered

# From here on a block gets dynamic shared memory only after asking for it.
SHARED_FREE_BYTES: Final = 48 * 1024
_INTEGERS: Final = {1: "b", 2: "h", 4: "i", 8: "q"}


class CudaLauncher:
    """Loaded on one device. Calls return at once; every launch is checked, faults show at the next sync."""

    def __init__(self, built: Built, index: int = 0) -> None:
        cuda = driver()
        self._names = built.tensors
        data = Path(built.path).read_bytes()
        functions = read_cubin(data)
        with entered(index):
            try:
                self._module = cuda.module_from_buffer(data)
                self._steps = [self._prepare(launch, functions) for launch in built.plan.launches]
            except cuda.Error as error:
                raise CompileError(f"The built kernel cannot be loaded: {error}.") from None
        self._sizes = {name: numel * itemsize_bytes(dtype) for name, dtype, numel in built.plan.workspaces}
        self._memory: dict[str, Any] = {}
        self.index = index

    def __call__(self, pointers: Mapping[str, int]) -> Callable[[], None]:
        """Bind addresses by name (every tensor; a workspace only to replace the own one)."""
        self._check_names([name for name in pointers if name not in self._sizes])
        table = {**self._workspaces(pointers), **pointers}
        calls = [
            partial(
                step.function.prepared_call,
                step.grid,
                step.block,
                *step.values(table),
                shared_size=step.smem_bytes,
            )
            for step in self._steps
        ]
        return _keeping(self, calls[0] if len(calls) == 1 else partial(_run_all, calls))

    def bind_names(self, order: Sequence[str]) -> Callable[..., None]:
        """A callable of addresses, positionally, in ``order``, on the default stream.

        Every tensor, and those workspaces that the caller brings.
        """
        return self._generate(order, "")

    def bind_stream(self, order: Sequence[str]) -> Callable[..., None]:
        """As ``bind_names``, of a ``pycuda.driver.Stream`` and the addresses: launches on that stream."""
        return self._generate(order, "stream")

    def _generate(self, order: Sequence[str], stream: str) -> Callable[..., None]:
        """Straight-line Python: a loop over launches and arguments would cost as much as the launch.

        What ``prepared_call`` does after looking at its arguments, which takes a quarter of its time.
        """
        self._check_names([name for name in order if name not in self._sizes])
        given = {name: f"p{i}" for i, name in enumerate(order)}
        own = {name: str(address) for name, address in self._workspaces(given).items()}
        names = {**own, **given}
        scope: dict[str, Any] = {}
        lines = [f"def launch({', '.join([*filter(None, [stream]), *(names[n] for n in order)])}):"]
        for i, step in enumerate(self._steps):
            scope |= {f"f{i}": step.function._launch_kernel, f"g{i}": step.grid, f"b{i}": step.block}
            scope[f"pack{i}"] = struct.Struct(step.function.arg_format).pack
            args = [names[a] if isinstance(a, str) else str(a) for a in step.args]
            packed = f"pack{i}({', '.join(args)})"
            lines.append(f"    f{i}(g{i}, b{i}, {packed}, {step.smem_bytes}, {stream or None})")
        exec(compile("\n".join(lines), "<cuda launch>", "exec"), scope)  # noqa: S102 - names and integers of ours
        return _keeping(self, scope["launch"])

    def _workspaces(self, given: Collection[str]) -> dict[str, int]:
        """Addresses of the own workspaces, allocated when first needed: all but those ``given``."""
        missing = self._sizes.keys() - self._memory.keys() - set(given)
        if missing:
            with entered(self.index):
                for name in sorted(missing):
                    self._memory[name] = driver().mem_alloc(max(self._sizes[name], 1))
        return {name: int(memory) for name, memory in self._memory.items()}

    def _prepare(self, launch: ResolvedLaunch, functions: Mapping[str, Function]) -> _Step:
        cuda = driver()
        function = self._module.get_function(launch.function)
        if launch.smem_bytes > SHARED_FREE_BYTES:
            attribute = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            function.set_attribute(attribute, launch.smem_bytes)
        function.prepare(argument_format(launch, functions[launch.function]))
        grid = (*launch.grid, 1, 1)[:3]
        block = (*launch.block, 1, 1)[:3]
        return _Step(function, grid, block, launch.smem_bytes, launch.args)

    def _check_names(self, given: Sequence[str]) -> None:
        if sorted(given) != sorted(self._names):
            wanted, got = ", ".join(self._names), ", ".join(given)
            raise ValueError(f"a launcher takes each of {wanted} once, but was given {got or 'nothing'}")


class _Step:
    """One launch, ready: PyCUDA's function and everything that never changes."""

    __slots__ = ("args", "block", "function", "grid", "smem_bytes")

    def __init__(
        self,
        function: Any,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        smem_bytes: int,
        args: tuple[str | int, ...],
    ) -> None:
        self.function, self.grid, self.block = function, grid, block
        self.smem_bytes, self.args = smem_bytes, args

    def values(self, table: Mapping[str, int]) -> list[int]:
        return [table[a] if isinstance(a, str) else a for a in self.args]


def argument_format(launch: ResolvedLaunch, function: Function, line: int = 1) -> str:
    """The arguments as characters of ``struct``, from the sizes that the compiled function really has.

    Raises KernelSourceError when an integer does not fit its parameter.
    """
    if len(launch.args) != len(function.parameters):
        count = len(function.parameters)
        raise KernelSourceError(line, f"{launch.function} takes {count} arguments, not {len(launch.args)}")
    letters = ""
    for arg, parameter in zip(launch.args, function.parameters, strict=True):
        if isinstance(arg, str):
            letters += "P"
            continue
        letter = _INTEGERS[parameter.size]
        try:
            struct.pack(letter, arg)
        except struct.error:
            bits = 8 * parameter.size
            raise KernelSourceError(
                line,
                f"{arg} does not fit a {bits}-bit parameter of {launch.function}",
                "a long long parameter",
            ) from None
        letters += letter
    return letters


def _run_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


def _keeping(owner: CudaLauncher, call: Any) -> Callable[..., None]:
    # Module and workspaces must outlive whoever still holds the callable and dropped the launcher.
    call.owner = owner
    kept: Callable[..., None] = call
    return kept
