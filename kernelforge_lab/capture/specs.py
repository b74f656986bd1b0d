"""From torch tensors (fake or real) to the torch-free TensorSpec, and back to a check."""

from __future__ import annotations

from typing import Final

import torch

from ..kernels.spec import DTYPES, TensorSpec, contiguous_strides

_ALIGN_BYTES: Final = 64
_NAMES: Final = {getattr(torch, name): name for name in DTYPES}
_SIZES: Final = {dtype: torch.empty((), dtype=dtype).element_size() for dtype in _NAMES}


def unsupported(value: object) -> str | None:
    """Why ``value`` cannot be described by a TensorSpec, or None when it can."""
    if not isinstance(value, torch.Tensor):
        return f"not a tensor ({type(value).__name__})"
    if value.dtype not in _NAMES:
        return f"dtype {str(value.dtype).removeprefix('torch.')}"
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        return f"layout {str(value.layout).removeprefix('torch.')}"
    if not all(type(n) is int for n in (*value.shape, *value.stride())):
        return "dynamic shape"
    return None


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """The spec of a strided tensor whose dtype we know.

    Two freedoms are taken out, so that equal regions hash equal: the stride of a dimension of size 1
    (never used to address anything) becomes the contiguous one, and of the storage offset only what
    changes the alignment within 64 bytes is kept.
    """
    shape = tuple(int(n) for n in tensor.shape)
    default = contiguous_strides(shape)
    if 0 in shape:
        strides = default
    else:
        actual = tensor.stride()
        strides = tuple(int(s) if n != 1 else d for n, s, d in zip(shape, actual, default, strict=True))
    period = _ALIGN_BYTES // _SIZES[tensor.dtype]
    return TensorSpec(shape, _NAMES[tensor.dtype], strides, int(tensor.storage_offset()) % period)


def disagreement(tensor: object, spec: TensorSpec) -> str | None:
    """How a real tensor differs from the spec it was traced with, or None. Offsets may differ."""
    reason = unsupported(tensor)
    if reason is not None:
        return reason
    assert isinstance(tensor, torch.Tensor)
    real = spec_of(tensor)
    if (real.shape, real.dtype, real.strides) == (spec.shape, spec.dtype, spec.strides):
        return None
    return f"traced as {spec}, really {real}"
