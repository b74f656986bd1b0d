from __future__ import annotations

import pytest

from kernelforge_lab.kernels.format import parse
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.kernels.skeleton import skeleton
from kernelforge_lab.targets.cpu import CpuTarget

REGION = Region.parse("""region(in0: f32[6,8;1,6], in1: bf16[8]) {
  t0 = aten.add.Tensor(in0, in1) : f32[6,8]
  t1 = aten.sum.dim_IntList(t0, [1]) : f32[6]
  return t0, t1
}""")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_skeleton_is_a_whole_kernel_file(target: str) -> None:
    source = skeleton(REGION, target)
    file = parse(source)
    plan = file.resolve(REGION)
    assert file.target == target
    assert plan.launches[0].args == ("in0", "in1", "out0", "out1")
    assert "in0: float32 [6, 8], strides [1, 6]" in source
    assert "t1 = aten.sum.dim_IntList(t0, [1]) : f32[6]" in source


def test_a_cpu_skeleton_compiles() -> None:
    assert CpuTarget(1).build(Kernel(skeleton(REGION, "cpu"), REGION.hash, "cpu"), REGION).foreign == ()
