"""Regions of the usual row functions at any width and dtype, for the table of issue 4."""

from __future__ import annotations

from kernelforge_lab.kernels.region import Region

SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
FUNCTIONS = (
    "softmax", "layer_norm", "group_norm", "rms_norm", "gelu", "silu", "sum", "mean", "var", "logsumexp",
)  # fmt: skip
GROUPS = 2
WIDTHS = (1, 7, 32, 33, 255, 256, 1000, 4097, 32768, 131072)


def rows_for(width: int) -> int:
    """Few rows where they are wide, so that a table of them stays quick."""
    return max(2, min(16, 65536 // width))


def row_region(function: str, width: int, dtype: str = "float32") -> Region:
    d, rows = SHORT[dtype], rows_for(width)
    x = f"{d}[{rows},{width}]"
    column = f"{d}[{rows},1]"
    wide = f"in0: {x}"
    match function:
        case "softmax":
            body = [f"t0 = aten._softmax.default(in0, -1, False) : {x}"]
        case "layer_norm":
            wide += f", in1: {d}[{width}], in2: {d}[{width}]"
            body = [f"t0 = aten.native_layer_norm.default(in0, [{width}], in1, in2, 1e-05) : ({x}, _, _)"]
        case "group_norm":
            groups = GROUPS
            shape = f"{d}[2,{groups * 2},{max(1, width // 2)}]"
            wide = f"in0: {shape}, in1: {d}[{groups * 2}], in2: {d}[{groups * 2}]"
            size = max(1, width // 2)
            call = f"aten.native_group_norm.default(in0, in1, in2, 2, {groups * 2}, {size}, {groups}, 1e-05)"
            body = [f"t0 = {call} : ({shape}, _, _)"]
        case "rms_norm":
            wide += f", in1: {d}[{width}]"
            f32 = f"f32[{rows},{width}]"
            body = [
                f"t0 = aten._to_copy.default(in0, dtype=dtype:float32) : {f32}",
                f"t1 = aten.pow.Tensor_Scalar(t0, 2) : {f32}",
                f"t2 = aten.mean.dim(t1, [-1], True) : f32[{rows},1]",
                f"t3 = aten.add.Tensor(t2, 1e-06) : f32[{rows},1]",
                f"t4 = aten.rsqrt.default(t3) : f32[{rows},1]",
                f"t5 = aten.mul.Tensor(t0, t4) : {f32}",
                f"t6 = aten._to_copy.default(t5, dtype=dtype:{dtype}) : {x}",
                f"t7 = aten.mul.Tensor(t6, in1) : {x}",
            ]
        case "gelu":
            body = [f"t0 = aten.gelu.default(in0, approximate='tanh') : {x}"]
        case "silu":
            body = [f"t0 = aten.silu.default(in0) : {x}"]
        case "sum":
            body = [f"t0 = aten.sum.dim_IntList(in0, [-1], True) : {column}"]
        case "mean":
            body = [f"t0 = aten.mean.dim(in0, [-1], True) : {column}"]
        case "var":
            body = [f"t0 = aten.var.correction(in0, [-1], correction=0, keepdim=True) : {column}"]
        case "logsumexp":
            body = [
                f"t0 = aten.amax.default(in0, [-1], True) : {column}",
                f"t1 = aten.sub.Tensor(in0, t0) : {x}",
                f"t2 = aten.exp.default(t1) : {x}",
                f"t3 = aten.sum.dim_IntList(t2, [-1], True) : {column}",
                f"t4 = aten.log.default(t3) : {column}",
                f"t5 = aten.add.Tensor(t4, t0) : {column}",
            ]
        case _:
            raise ValueError(function)
    last = body[-1].split(" = ")[0]
    result = f"{last}.0" if function in ("layer_norm", "group_norm") else last
    lines = "".join(f"  {line}\n" for line in body)
    return Region.parse(f"region({wide}) {{\n{lines}  return {result}\n}}")
