"""The ``call`` clock: a kernel as the model pays for it, behind a guard that checks inputs and makes outputs.

The checker never runs a candidate, so it times the guard around a function that does nothing and adds that to
the kernel's own time. Stock's time already is that of a call: it allocates its outputs too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..kernels.execution import torch_dtype
from ..kernels.region import Region
from .statistics import median

if TYPE_CHECKING:
    import torch

_BLOCKS: Final = 9
_CALLS: Final = 300


def overhead_s(region: Region, inputs: Sequence[torch.Tensor]) -> float:
    """Seconds that one guarded call takes besides its kernel (host memory)."""
    call, outputs = guarded(region, _nothing(len(inputs) + len(region.outputs))), None
    times = []
    for _ in range(_BLOCKS):
        begin = time.perf_counter()
        for _ in range(_CALLS):
            outputs = call(*inputs)
        times.append((time.perf_counter() - begin) / _CALLS)
    del outputs
    return median(times)


def guarded(region: Region, launch: Callable[..., Any]) -> Callable[..., Any]:
    """``launch`` behind the same work that an installed guard does, as straight-line Python."""
    import torch

    empty = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", None) or _empty
    scope: dict[str, Any] = {"launch": launch, "empty": empty}
    names, outs = region.input_names, region.output_names
    tests = []
    for name, spec in zip(names, region.inputs, strict=True):
        scope |= {f"{name}_shape": torch.Size(spec.shape), f"{name}_strides": {spec.strides}}
        scope[f"{name}_dtype"] = torch_dtype(spec.dtype)
        tests += [f"{name}.shape != {name}_shape", f"{name}.stride() not in {name}_strides"]
        tests.append(f"{name}.dtype is not {name}_dtype")
    lines = [f"def call({', '.join(names)}):"]
    if tests:
        lines.append(f"    if {' or '.join(tests)}: raise ValueError")
    for i, spec in enumerate(region.outputs):
        scope |= {f"s{i}": spec.shape, f"t{i}": spec.strides, f"d{i}": torch_dtype(spec.dtype)}
        lines.append(f"    {outs[i]} = empty(s{i}, t{i}, d{i})")
    pointers = ", ".join(f"{name}.data_ptr()" for name in (*names, *outs))
    lines += [f"    launch({pointers})", f"    return ({', '.join(outs)},)"]
    exec(compile("\n".join(lines), "<call clock>", "exec"), scope)  # noqa: S102 - our own text
    call: Callable[..., Any] = scope["call"]
    return call


def _nothing(count: int) -> Callable[..., Any]:
    """A C function of ``count`` addresses that does nothing with them."""
    function = ctypes.CDLL(None).abs
    function.argtypes = [ctypes.c_void_p] * count
    function.restype = None
    nothing: Callable[..., Any] = function
    return nothing


def _empty(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    import torch

    return torch.empty_strided(shape, strides, dtype=dtype)
