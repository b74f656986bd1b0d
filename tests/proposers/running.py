"""Build and run a templates kernel on real tensors, in this process (tests only)."""

from __future__ import annotations

import torch

from kernelforge_lab.kernels.execution import compile_region, torch_dtype
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.spec import EPS
from kernelforge_lab.proposers.templates.proposer import strategy_of, write
from kernelforge_lab.targets import get


def run(region: Region, strategy: str, inputs: tuple[torch.Tensor, ...], **params: int) -> list[torch.Tensor]:
    chosen = strategy_of(strategy, "cpu")
    assert chosen is not None
    source = write(region, chosen, threads=2)
    kernel = Kernel(source, region.hash, "cpu", tuple(sorted(params.items())))
    target = get("cpu")
    launcher = target.load(target.build(kernel, region))
    outputs = []
    for spec in region.outputs:
        storage = torch.full((spec.extent,), 77 if spec.dtype != "bool" else 1, dtype=torch_dtype(spec.dtype))
        outputs.append(storage.as_strided(spec.shape, spec.strides))
    addresses = dict(zip(region.input_names, (t.data_ptr() for t in inputs), strict=True))
    addresses |= dict(zip(region.output_names, (t.data_ptr() for t in outputs), strict=True))
    launcher(addresses)()
    return outputs


def assert_matches_oracle(
    region: Region, outputs: list[torch.Tensor], inputs: tuple[torch.Tensor, ...]
) -> None:
    """Error against float64 at most twice eager's or a few roundings, scaled by the element or the oracle's rms."""
    upcast = [t.double() if t.is_floating_point() else t for t in inputs]
    expected = compile_region(region, float64=True)(*upcast)
    eager = compile_region(region)(*inputs)
    for k, (out, want, stock) in enumerate(zip(outputs, expected, eager, strict=True)):
        assert out.shape == want.shape
        if not out.is_floating_point():
            assert torch.equal(out, stock.to(out.dtype)), f"out{k} of {region.title}"
            continue
        finite = want.isfinite() & stock.isfinite()
        assert torch.equal(out.isnan(), stock.isnan()), f"out{k}: NaNs differ"
        infinite = stock.isinf() & want.isinf()
        assert torch.equal(out[infinite], stock[infinite]), f"out{k}: infinities differ"
        if not finite.any():
            continue
        # Where the exact result cancels to nothing, what is left is rounding of the inputs.
        largest = max((float(t.abs().max()) for t in upcast if t.is_floating_point()), default=1.0)
        rms = want[finite].pow(2).mean().sqrt().clamp_min(max(largest, 1e-24) * 1e-6)
        scale = want[finite].abs().maximum(rms)
        mine = ((out.double() - want)[finite].abs() / scale).max()
        theirs = ((stock.double() - want)[finite].abs() / scale).max()
        # Of a float64 region the oracle is eager itself, no more exact than the kernel: a chain of norms
        # multiplies the rounding of both.
        units = 64 if region.outputs[k].dtype == "float64" else 8
        bound = max(2 * float(theirs), units * EPS[region.outputs[k].dtype])
        assert float(mine) <= bound, f"out{k} of {region.title}: error {float(mine):.3g} over {bound:.3g}"
