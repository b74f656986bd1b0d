"""Answers that are wrong but plausible. Inputs on which every decoy fails can tell right from wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..kernels.execution import torch_dtype
from .inputs import view_storage
from .oracle import Case, Oracle, check_error

if TYPE_CHECKING:
    import torch

COPY: Final = "a copy of an input"


def decoys(oracle: Oracle, case: Case, previous: Case, k: int) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, tensor) of every decoy for output ``k``, in the output's dtype."""
    import torch

    spec = oracle.region.outputs[k]
    dtype = torch_dtype(spec.dtype)
    want = case.expected[k]
    yield "zeros", torch.zeros(spec.shape, dtype=dtype)
    yield "ones", torch.ones(spec.shape, dtype=dtype)
    if spec.is_floating and spec.numel > 1:
        yield "the output's mean", torch.full(spec.shape, float(want[want.isfinite()].mean()), dtype=dtype)
    for data, given in zip(case.storages, oracle.region.inputs, strict=True):
        if given.shape == spec.shape:
            yield COPY, view_storage(data, given).to(dtype)
            break
    yield "the previous output", previous.expected[k].to(dtype)


def undecided(oracle: Oracle) -> str:
    """Why the region cannot be judged: a decoy that passes everywhere; "" when each is caught.

    A copy of an input that passes everywhere is the region's own meaning (a cast, a clone) and allowed.
    """
    pairs = [("recorded", 0), ("varied", 0), ("varied", 1)]
    cases = [oracle.case(name, offset) for name, offset in pairs]
    usable = [case for case in cases if not case.skipped]
    if not usable:
        return (
            "eager is too far from float64 on every usual input to tell right from wrong: " + cases[0].skipped
        )
    for k, (name, spec) in enumerate(zip(oracle.region.output_names, oracle.region.outputs, strict=True)):
        if spec.numel == 0:
            continue
        passed: dict[str, int] = {}
        for case, previous in zip(usable, [*usable[1:], usable[0]], strict=True):
            for decoy, values in decoys(oracle, case, previous, k):
                fraction, _ = check_error(case, k, values)
                passed[decoy] = passed.get(decoy, 0) + (fraction <= 1)
        if len(usable) == 1:
            passed.pop("the previous output", None)
        fooled = [d for d, times in passed.items() if times == len(usable) and d != COPY]
        if fooled:
            return f"'{fooled[0]}' would pass as {name} on every input the judge can make"
    return ""
