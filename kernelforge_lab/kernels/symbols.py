"""The names a kernel can use: sizes, strides and C types of a region's tensors.

For each tensor ``X`` (``IN0``, ``OUT0``): ``X_NUMEL``, ``X_D0…`` (sizes), ``X_S0…`` (strides in elements)
and, as ``#define`` only, ``X_T`` (its C type). ``NUMEL``, ``COLS`` and ``ROWS`` describe ``out0``: elements,
last size (1 when 0-dim), and ``NUMEL / COLS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .region import Region
from .spec import TensorSpec

# torch dtype -> C type of both preludes; kf_bf16 and kf_f16 are defined there.
C_TYPES: Final = {
    "float64": "double",
    "float32": "float",
    "float16": "kf_f16",
    "bfloat16": "kf_bf16",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
}

_RESERVED: Final = re.compile(
    r"NUMEL|COLS|ROWS|THREADS_MAX|(?:IN|OUT)[0-9]+_(?:NUMEL|T|[DS][0-9]+)|KF_.*|_.*", re.ASCII
)


def is_reserved(name: str) -> bool:
    """Whether ``name`` belongs to a region's symbols or to the preludes (``KF_…``)."""
    return _RESERVED.fullmatch(name) is not None


def region_symbols(region: Region) -> dict[str, int]:
    """Every integer symbol of ``region``, for launch expressions and as ``#define``."""
    table: dict[str, int] = {}
    for name, spec in _tensors(region):
        table[f"{name}_NUMEL"] = spec.numel
        table.update({f"{name}_D{k}": size for k, size in enumerate(spec.shape)})
        table.update({f"{name}_S{k}": stride for k, stride in enumerate(spec.strides)})
    outputs = region.outputs
    numel = outputs[0].numel if outputs else 0
    cols = outputs[0].shape[-1] if outputs and outputs[0].shape else 1
    table.update(NUMEL=numel, COLS=cols, ROWS=numel // cols if cols else 0)
    return table


def region_defines(region: Region) -> dict[str, str]:
    """The C type of every tensor of ``region``."""
    return {f"{name}_T": C_TYPES[spec.dtype] for name, spec in _tensors(region)}


def _tensors(region: Region) -> Iterator[tuple[str, TensorSpec]]:
    yield from zip(map(str.upper, region.input_names), region.inputs, strict=True)
    yield from zip(map(str.upper, region.output_names), region.outputs, strict=True)
