"""Every template kernel on the GPU against the float64 oracle, first, middle and last tune values."""

from __future__ import annotations

import itertools

import pytest
import torch

from kernelforge_lab.kernels.execution import torch_dtype
from kernelforge_lab.kernels.format import parse
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.proposers.templates.proposer import TemplatesProposer, strategy_of, write
from kernelforge_lab.targets import get
from tests.proposers.cases import Case, cases
from tests.proposers.running import assert_matches_oracle
from tests.proposers.tracing import region_of

pytestmark = pytest.mark.gpu
PROPOSER = TemplatesProposer()


def _on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its strides on the GPU."""
    if 0 in tensor.stride():
        return tensor[:1].contiguous().cuda().expand(tensor.shape)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda").copy_(tensor)


def _large() -> list[Case]:
    """Rows long enough for several blocks, clusters and relays."""
    import torch.nn.functional as F

    def image(channels: int, size: int) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        pixels = torch.randn(1, channels, size, size, generator=generator) * 3 + 5
        weight, bias = torch.randn(2, channels, generator=generator)
        return pixels.bfloat16(), weight.bfloat16(), bias.bfloat16()

    def norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(x, 8, w, b))

    return [
        Case("group_norm_large", norm, image(64, 256)),
        Case("sum_large", torch.sum, (torch.randn(3_000_000),)),
    ]


def _run(
    region: Region, source: str, params: dict[str, int], inputs: tuple[torch.Tensor, ...]
) -> list[torch.Tensor]:
    target = get("cuda")
    kernel = Kernel(source, region.hash, "cuda", tuple(sorted(params.items())))
    outputs = []
    for spec in region.outputs:
        fill = 77 if spec.dtype != "bool" else 1
        storage = torch.full((max(spec.extent, 1),), fill, dtype=torch_dtype(spec.dtype), device="cuda")
        outputs.append(storage.as_strided(spec.shape, spec.strides))
    names = (*region.input_names, *region.output_names)
    addresses = dict(zip(names, (t.data_ptr() for t in (*inputs, *outputs)), strict=True))
    launcher = target.load(target.build(kernel, region))
    torch.cuda.synchronize()
    launcher(addresses)()
    torch.cuda.synchronize()
    return outputs


@pytest.mark.parametrize("case", [*cases(), *_large()], ids=lambda c: c.name)
def test_every_strategy_matches_the_float64_oracle(case: Case) -> None:
    if case.name == "arange_mask":
        pytest.skip("its function makes a tensor on the CPU")
    inputs = tuple(_on_gpu(t) for t in case.inputs)
    region = region_of(case.function, *inputs)
    strategies = PROPOSER.strategies(region, "cuda", None)
    assert strategies, PROPOSER.refuses(region, "cuda")
    for name in strategies:
        strategy = strategy_of(name, "cuda")
        assert strategy is not None
        source = write(region, strategy, 0)
        tunes = parse(source).tunes
        combos = [dict(zip(tunes, values, strict=True)) for values in itertools.product(*tunes.values())]
        for params in {id(c): c for c in (combos[0], combos[len(combos) // 2], combos[-1])}.values():
            assert_matches_oracle(region, _run(region, source, params, inputs), inputs)
