"""Run a region with torch: in its own dtypes (stock eager) or in float64 (the oracle).

The only module of ``kernels`` that touches torch, and only when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .region import Arg, Ref, Region, Symbol
from .spec import FLOATING

if TYPE_CHECKING:
    import torch

TensorFunction = Callable[..., "tuple[torch.Tensor, ...]"]


def compile_region(region: Region, *, float64: bool = False) -> TensorFunction:
    """A function of the region's inputs returning a tuple of its outputs.

    Straight-line Python over ``torch.ops.aten``, names dropped after their last use, so that it costs
    what the model's own eager calls cost. With ``float64`` every floating dtype constant becomes
    float64 (inputs must be upcast by the caller): the oracle of judging.md.
    """
    import torch

    last_use: dict[str, int] = {}
    for i, op in enumerate(region.ops):
        for name in op.refs():
            last_use[_local(name)] = i
    keep = {_local(name) for name in region.results}
    scope: dict[str, object] = {"torch": torch}
    lines = [f"def region({', '.join(region.input_names)}):"]
    for i, op in enumerate(region.ops):
        namespace, packet, overload = op.target.split(".")
        scope[f"f{i}"] = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
        args = [_source(a, float64) for a in op.args]
        args += [f"{key}={_source(value, float64)}" for key, value in op.kwargs]
        lines.append(f"    {op.name} = f{i}({', '.join(args)})")
        dead = [n for n, at in last_use.items() if at == i and n not in keep]
        if dead:
            lines.append("    " + " = ".join(dead) + " = None")
    results = [_value(name) for name in region.results]
    lines.append(f"    return ({', '.join(results)}{',' if results else ''})")
    exec(compile("\n".join(lines), f"<region {region.hash}>", "exec"), scope)  # noqa: S102 (our own text, built from op names and literals)
    function = scope["region"]
    assert callable(function)
    return function


def torch_dtype(name: str) -> torch.dtype:
    import torch

    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _local(name: str) -> str:
    return name.partition(".")[0]


def _value(name: str) -> str:
    base, _, item = name.partition(".")
    return f"{base}[{item}]" if item else base


def _source(arg: Arg, float64: bool) -> str:
    if isinstance(arg, Ref):
        return _value(arg.name)
    if isinstance(arg, Symbol):
        if arg.kind == "dtype":
            return f"torch.{'float64' if float64 and arg.value in FLOATING else arg.value}"
        return f"torch.device({arg.value!r})" if arg.kind == "device" else f"torch.{arg.value}"
    if isinstance(arg, tuple):
        return "[" + ", ".join(_source(item, float64) for item in arg) + "]"
    if isinstance(arg, float):
        return f"float({str(arg)!r})" if arg != arg or abs(arg) == float("inf") else repr(arg)
    return repr(arg)
