"""Answers that are wrong but plausible. Inputs on which every decoy fails can tell right from wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..kernels.execution import torch_dtype
from ..kernels.region import Region
from .inputs import view_storage
from .oracle import Case, Oracle, check_error

if TYPE_CHECKING:
    import torch

ZEROS: Final = "zeros"
ONES: Final = "ones"
MEAN: Final = "the output's mean"
COPY: Final = "a copy of an input"
PREVIOUS: Final = "the previous output"
_ORDER: Final = (ZEROS, ONES, MEAN, COPY, PREVIOUS)


def decoys(oracle: Oracle, case: Case, previous: Case, k: int) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, tensor) of every decoy for output ``k``, in the output's dtype."""
    import torch

    spec = oracle.region.outputs[k]
    dtype = torch_dtype(spec.dtype)
    want = case.expected[k]
    yield ZEROS, torch.zeros(spec.shape, dtype=dtype, device=want.device)
    yield ONES, torch.ones(spec.shape, dtype=dtype, device=want.device)
    if spec.is_floating and spec.numel > 1:
        mean = float(want[want.isfinite()].mean())
        # The float64 oracle of an exp may leave the output's dtype: what cannot be written fools nobody.
        if abs(mean) <= torch.finfo(dtype).max:
            yield MEAN, torch.full(spec.shape, mean, dtype=dtype, device=want.device)
    for data, given in zip(case.storages, oracle.region.inputs, strict=True):
        if given.shape == spec.shape:
            yield COPY, view_storage(data, given).to(dtype)
            break
    yield PREVIOUS, previous.expected[k].to(dtype)


def undecided(oracle: Oracle) -> str:
    """Why the region cannot be judged: a decoy that passes everywhere; "" when each is caught.

    Usual inputs come first; a decoy that passes them all (the mean of a logsumexp over 32k values) must be
    caught by a wider family, at last by NaN and infinities (a softmax over one class is 1, or NaN). A copy
    of an input that passes everywhere is the region's own meaning (a cast, a clone) and allowed. So is any
    decoy for a constant: no input decides what is right there.
    """
    usual = [oracle.case("recorded"), oracle.case("varied"), oracle.case("varied", 1)]
    usable = [case for case in usual if not case.skipped]
    if not usable:
        return f"no usual input can tell right from wrong: {usual[0].skipped}"
    fooling = _fooling(oracle, usable[0], usable[-1], None)
    for case in usable[1:]:
        fooling = _fooling(oracle, case, usable[0], fooling)
    for name in oracle.full_names():
        if not fooling:
            return ""
        case = oracle.case(name)
        if not case.skipped:
            fooling = _fooling(oracle, case, usable[0], fooling)
    left = [(k, decoy) for k, decoy in fooling if decoy != COPY and not is_constant(oracle.region, k)]
    if not left:
        return ""
    k, decoy = min(left, key=lambda pair: (pair[0], _ORDER.index(pair[1])))
    return f"'{decoy}' would pass as {oracle.region.output_names[k]} on every input the judge can make"


def is_constant(region: Region, k: int) -> bool:
    """Whether output ``k`` is made without the values of any input (``arange``, ``zeros_like``)."""
    varies = set(region.input_names)
    for op in region.ops:
        takes_values = not op.short_name.endswith("_like") and not op.short_name.startswith("new_")
        if takes_values and any(name.partition(".")[0] in varies for name in op.refs()):
            varies.add(op.name)
    return region.results[k].partition(".")[0] not in varies


def _fooling(
    oracle: Oracle, case: Case, previous: Case, among: set[tuple[int, str]] | None
) -> set[tuple[int, str]]:
    """(output, decoy) pairs of ``among`` (None: all) that pass on this case too."""
    passed = set()
    for k, spec in enumerate(oracle.region.outputs):
        if spec.numel == 0 or (among is not None and not any(output == k for output, _ in among)):
            continue
        for decoy, values in decoys(oracle, case, previous, k):
            if previous is case and decoy == PREVIOUS:
                continue
            if (among is None or (k, decoy) in among) and check_error(case, k, values)[0] <= 1:
                passed.add((k, decoy))
    return passed
