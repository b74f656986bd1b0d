"""Which ATen operators may be part of a region: one table, read by partition and templates alike.

Keys are full targets (``aten.add.Tensor``). An operator that is in none of the tables is *heavy*: it
stays a call into PyTorch and ends a level (design.md, "Partition").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Kind(StrEnum):
    """What the partition does with a node."""

    FUSIBLE = "fusible"
    VIEW = "view"
    HEAVY = "heavy"
    RANDOM = "random"


class Fusible(StrEnum):
    """What a fusible operator computes, for those who write kernels from a region."""

    POINTWISE = "pointwise"
    CREATION = "creation"
    SHAPE = "shape"
    REDUCTION = "reduction"
    COMPOSITE = "composite"


def _aten(kind: Fusible, names: Iterable[str]) -> dict[str, Fusible]:
    """``"add.Tensor"`` → ``aten.add.Tensor``; a name without overload means ``.default``."""
    return {f"aten.{name}" if "." in name else f"aten.{name}.default": kind for name in names}


_UNARY = """
    abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh
    tanh asinh acosh atanh erf erfc sigmoid relu silu gelu elu leaky_relu hardtanh hardsigmoid hardswish
    mish softplus hardshrink softshrink threshold logical_not bitwise_not sign ceil floor round trunc frac
    isnan isinf nan_to_num clamp clamp_min clamp_max clamp.Tensor clamp_min.Tensor clamp_max.Tensor
    _to_copy clone lift_fresh_copy
""".split()
_BINARY = """
    add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar mul.Tensor mul.Scalar
    div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode floor_divide floor_divide.Scalar
    remainder.Tensor remainder.Scalar fmod.Tensor fmod.Scalar
    pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar maximum minimum fmax fmin atan2
    eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar
    gt.Tensor gt.Scalar ge.Tensor ge.Scalar logical_and logical_or logical_xor
    bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor bitwise_or.Scalar
    bitwise_xor.Tensor bitwise_xor.Scalar copy
""".split()
_TERNARY = "where.self masked_fill.Scalar masked_fill.Tensor addcmul addcdiv lerp.Scalar lerp.Tensor".split()
_CREATION = """
    arange arange.start arange.start_step full full_like zeros zeros_like ones ones_like scalar_tensor
    new_zeros new_ones new_full
""".split()
_SHAPE = "cat stack constant_pad_nd slice_scatter select_scatter tril triu repeat flip".split()
_REDUCTION = """
    sum sum.dim_IntList mean mean.dim amax amin max min max.dim min.dim argmax argmin
    any any.dim any.dims all all.dim all.dims prod prod.dim_int
    var.correction std.correction var_mean.correction linalg_vector_norm logsumexp
""".split()
_COMPOSITE = """
    native_layer_norm native_group_norm native_batch_norm cudnn_batch_norm
    _native_batch_norm_legit_no_training
    _softmax _log_softmax upsample_nearest2d
""".split()

FUSIBLE: Final[Mapping[str, Fusible]] = MappingProxyType(
    _aten(Fusible.POINTWISE, (*_UNARY, *_BINARY, *_TERNARY))
    | _aten(Fusible.CREATION, _CREATION)
    | _aten(Fusible.SHAPE, _SHAPE)
    | _aten(Fusible.REDUCTION, _REDUCTION)
    | _aten(Fusible.COMPOSITE, _COMPOSITE)
)

# Views that a kernel can follow by index arithmetic. ``as_strided``, ``unfold`` and ``view.dtype`` are
# not here: they speak about storage, which a kernel's output need not share with eager's.
VIEWS: Final = frozenset(
    f"aten.{name}"
    for name in """
    view.default _unsafe_view.default reshape.default t.default transpose.int permute.default
    unsqueeze.default squeeze.default squeeze.dim squeeze.dims expand.default slice.Tensor select.int
    alias.default detach.default split.Tensor split_with_sizes.default unbind.int chunk.default
    diagonal.default
    """.split()
)

# Packets known to belong to a vendor library or to need more than index arithmetic: kept on PyTorch
# without a remark. Anything else outside the tables is named in ``Workload.uncaptured``.
HEAVY: Final = frozenset(
    """
    mm addmm bmm baddbmm addmv addbmm mv dot vdot convolution convolution_overrideable embedding embedding_bag
    _embedding_bag index _unsafe_index index_select gather scatter scatter_add scatter_reduce index_put
    index_add _grouped_mm grouped_mm _scaled_mm max_pool1d max_pool2d_with_indices max_pool3d_with_indices
    avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d
    upsample_bilinear2d upsample_bicubic2d cumsum cumprod cummax cummin logcumsumexp sort topk kthvalue
    median mode unique nonzero masked_select masked_scatter as_strided unfold im2col col2im
    linalg_solve_triangular linalg_solve linalg_qr linalg_svd linalg_eigh linalg_inv_ex linalg_cholesky_ex
    linalg_lu_factor_ex linalg_det native_batch_norm_legit_functional _native_batch_norm_legit_functional
    _native_batch_norm_legit miopen_batch_norm lstm gru _thnn_fused_lstm_cell
    mkldnn_rnn_layer pixel_shuffle roll
    """.split()
)

RANDOM: Final = frozenset(
    """
    bernoulli native_dropout dropout rand rand_like randn randn_like randint randint_like randperm normal
    normal_functional uniform multinomial exponential poisson rrelu_with_noise rrelu_with_noise_functional
    geometric log_normal cauchy random
    """.split()
)


def kind_of(target: str) -> Kind:
    """Kind of a full target string; unknown operators are heavy."""
    if target in FUSIBLE:
        return Kind.FUSIBLE
    if target in VIEWS:
        return Kind.VIEW
    return Kind.RANDOM if _packet(target) in RANDOM else Kind.HEAVY


def is_known_heavy(target: str) -> bool:
    """True when the operator is a library's business rather than a gap in our tables."""
    packet = _packet(target)
    return packet in HEAVY or "scaled_dot_product" in packet or "attention" in packet


def _packet(target: str) -> str:
    parts = target.split(".")
    return parts[1] if len(parts) > 2 else parts[-1]
