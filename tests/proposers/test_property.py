"""Random regions: whatever ops, shapes, strides and dtypes meet, every strategy computes the same."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelforge_lab.proposers.templates.proposer import TemplatesProposer

from .running import assert_matches_oracle, run
from .tracing import region_of

PROPOSER = TemplatesProposer()
Step = Callable[[torch.Tensor], torch.Tensor]


def _halves(x: torch.Tensor) -> torch.Tensor:
    half = max(1, x.shape[-1] // 2)
    return torch.cat([-x[..., half:], x[..., :half]], -1)


# Each keeps rank 3; all are safe for values of either sign.
STEPS: dict[str, Step] = {
    "sigmoid": torch.sigmoid,
    "square": lambda x: x * x * 0.1,
    "shift": lambda x: x + 0.5,
    "relu": F.relu,
    "softmax_last": lambda x: torch.softmax(x, -1),
    "softmax_first": lambda x: torch.softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "centre": lambda x: x - x.mean((0, 2), keepdim=True),
    "scale_by_peak": lambda x: x / (x.abs().amax(-1, keepdim=True) + 1),
    "transpose": lambda x: x.transpose(0, 2),
    "flatten_back": lambda x: x.reshape(-1).reshape(x.shape) * 2,
    "regroup": lambda x: (x.reshape(x.shape[0], -1, 1) + 1).reshape(x.shape),
    "halves": _halves,
    "pad": lambda x: F.pad(x, (1, 0, 0, 2)),
    "every_other": lambda x: x[:, ::2],
    "flip": lambda x: x.flip(1),
    "mask": lambda x: torch.where(x > 0, x, x * 0.25),
    "triangle": torch.tril,
    "to_bf16": lambda x: x.to(torch.bfloat16),
    "to_f32": lambda x: x.to(torch.float32),
    "broadcast_sum": lambda x: x + x.sum(1, keepdim=True) * 0.1,
}
LAYOUTS: dict[str, Step] = {
    "plain": lambda x: x,
    "permuted": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "sliced": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "expanded": lambda x: x[:1].expand(x.shape),
}


@given(
    shape=st.tuples(*[st.integers(1, 9)] * 3),
    layout=st.sampled_from(sorted(LAYOUTS)),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    outputs=st.sets(st.integers(0, 4), max_size=2),
)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_random_chains(
    shape: tuple[int, int, int], layout: str, dtype: torch.dtype, names: list[str], outputs: set[int]
) -> None:
    def chain(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = []
        for k, name in enumerate(names):
            x = STEPS[name](x)
            if k in outputs:
                seen.append(x)
        return (x * 1, *seen)

    x = LAYOUTS[layout](torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype))
    region = region_of(chain, x)
    strategies = PROPOSER.strategies(region, "cpu", None)
    assert strategies, PROPOSER.refuses(region, "cpu")
    for strategy in strategies:
        assert_matches_oracle(region, run(region, strategy, (x,)), (x,))
