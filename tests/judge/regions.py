"""Regions that the kernels of this folder are written for, by the name in their ``// region:`` line."""

from __future__ import annotations

from kernelforge_lab.kernels.region import Region

TEXTS = {
    # Odd sizes on purpose: vector tails exist.
    "add": """region(in0: f32[37,53], in1: f32[53]) {
  t0 = aten.add.Tensor(in0, in1) : f32[37,53]
  return t0
}""",
    "relu": """region(in0: f32[41,67]) {
  t0 = aten.relu.default(in0) : f32[41,67]
  return t0
}""",
    "rmsnorm": """region(in0: f32[24,300], in1: f32[300]) {
  t0 = aten.pow.Tensor_Scalar(in0, 2) : f32[24,300]
  t1 = aten.mean.dim(t0, [-1], True) : f32[24,1]
  t2 = aten.add.Tensor(t1, 1e-06) : f32[24,1]
  t3 = aten.rsqrt.default(t2) : f32[24,1]
  t4 = aten.mul.Tensor(in0, t3) : f32[24,300]
  t5 = aten.mul.Tensor(t4, in1) : f32[24,300]
  return t5
}""",
    "softmax": """region(in0: f32[4,32768]) {
  t0 = aten._softmax.default(in0, -1, False) : f32[4,32768]
  return t0
}""",
    "layernorm": """region(in0: f32[16,1000], in1: f32[1000], in2: f32[1000]) {
  t0 = aten.native_layer_norm.default(in0, [1000], in1, in2, 1e-05) : (f32[16,1000], _, _)
  return t0.0
}""",
    "sum": """region(in0: f32[4001]) {
  t0 = aten.sum.default(in0) : f32[]
  return t0
}""",
    "half_sum": """region(in0: f16[8,4096]) {
  t0 = aten.sum.dim_IntList(in0, [-1]) : f16[8]
  return t0
}""",
    "bf16_silu": """region(in0: bf16[33,129]) {
  t0 = aten.silu.default(in0) : bf16[33,129]
  return t0
}""",
    "argmax": """region(in0: f32[19,100]) {
  t0 = aten.argmax.default(in0, -1) : i64[19]
  return t0
}""",
    "transposed_add": """region(in0: f32[31,45;1,31], in1: f32[31,45;0,1]) {
  t0 = aten.add.Tensor(in0, in1) : f32[31,45;1,31]
  return t0
}""",
}


def region(name: str) -> Region:
    return Region.parse(TEXTS[name])
