"""A region as JSON that a reader without our parser understands: tensors and calls."""

from __future__ import annotations

import math
from typing import Any

from ..kernels.region import Arg, Ref, Region, Symbol
from ..kernels.spec import TensorSpec


def region_json(region: Region) -> dict[str, Any]:
    """``inputs``, ``outputs``, ``ops`` and ``results``; see ``argument_json`` for arguments."""
    return {
        "inputs": [_tensor(spec) for spec in region.inputs],
        "outputs": [_tensor(spec) for spec in region.outputs],
        "ops": [
            {
                "name": op.name,
                "target": op.target,
                "args": [argument_json(arg) for arg in op.args],
                "kwargs": {key: argument_json(arg) for key, arg in op.kwargs},
            }
            for op in region.ops
        ],
        "results": list(region.results),
    }


def argument_json(arg: Arg) -> Any:
    """Numbers, words, None and lists are themselves; all else is an object of one key.

    ``{"ref": "t0"}`` a value, ``{"dtype": "float32"}`` (or layout, device, memory_format) a constant of
    torch's, ``{"float": "inf"}`` a number JSON has no word for.
    """
    if isinstance(arg, Ref):
        return {"ref": arg.name}
    if isinstance(arg, Symbol):
        return {arg.kind: arg.value}
    if isinstance(arg, tuple):
        return [argument_json(item) for item in arg]
    if isinstance(arg, float) and not math.isfinite(arg):
        return {"float": str(arg)}
    return arg


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {
        "shape": list(spec.shape),
        "dtype": spec.dtype,
        "strides": list(spec.strides),
        "offset": spec.offset,
    }
