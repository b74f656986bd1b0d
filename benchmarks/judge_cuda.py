"""The judge on a GPU: what one candidate costs, and how still the clock stands. Prints JSON.

python benchmarks/judge_cuda.py [OUT.json]   on a machine with an NVIDIA GPU
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from kernelforge_lab.judge.job import Job
from kernelforge_lab.judge.pool import JudgePool
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.kernels.region import Region

SOURCE = """\
// forge: target cuda
// forge: tune BLOCK 256 128 512
// forge: launch rms grid=(ROWS) block=(BLOCK) args=(in0, in1, out0)
extern "C" __global__ void __launch_bounds__(BLOCK) rms(
    const kf_bf16* __restrict__ x, const kf_bf16* __restrict__ w, kf_bf16* y) {
  constexpr int STEPS = (COLS + BLOCK * 8 - 1) / (BLOCK * 8);
  __shared__ float parts[BLOCK / 32];
  x += (int64_t)blockIdx.x * COLS;
  y += (int64_t)blockIdx.x * COLS;
  kf::Vec<kf_bf16, 8> kept[STEPS];
  float total = 0;
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
    const int c = (s * BLOCK + threadIdx.x) * 8;
    if (c < COLS) {
      kept[s] = kf::load<8>(x + c);
      for (int j = 0; j < 8; j++) total += kept[s][j] * kept[s][j];
    }
  }
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
  __syncthreads();
  total = 0;
  for (int i = 0; i < BLOCK / 32; i++) total += parts[i];
  const float scale = kf::rsqrt(total / COLS + 1e-6f);
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
    const int c = (s * BLOCK + threadIdx.x) * 8;
    if (c < COLS) {
      auto u = kf::load<8>(w + c);
      for (int j = 0; j < 8; j++) kept[s][j] = kept[s][j] * scale * u[j];
      kf::store(y + c, kept[s]);
    }
  }
}
"""


def rmsnorm(rows: int, cols: int) -> Region:
    wide, thin = f"f32[{rows},{cols}]", f"f32[{rows},1]"
    return Region.parse(f"""region(in0: bf16[{rows},{cols}], in1: bf16[{cols}]) {{
  t0 = aten._to_copy.default(in0, dtype=dtype:float32) : {wide}
  t1 = aten.pow.Tensor_Scalar(t0, 2) : {wide}
  t2 = aten.mean.dim(t1, [-1], True) : {thin}
  t3 = aten.add.Tensor(t2, 1e-06) : {thin}
  t4 = aten.rsqrt.default(t3) : {thin}
  t5 = aten.mul.Tensor(t0, t4) : {wide}
  t6 = aten._to_copy.default(in1, dtype=dtype:float32) : f32[{cols}]
  t7 = aten.mul.Tensor(t5, t6) : {wide}
  t8 = aten._to_copy.default(t7, dtype=dtype:bfloat16) : bf16[{rows},{cols}]
  return t8
}}""")


def main() -> None:
    rows = []
    with JudgePool("cuda") as pool:
        for shape in ((512, 2304), (4096, 4096), (2048, 8192)):
            region = rmsnorm(*shape)
            begin = time.perf_counter()
            stock = pool.prepare(region).result()
            prepare_s = time.perf_counter() - begin
            for block in (256, 128, 512):
                for finalist in (False, True) if block == 256 else (False,):
                    kernel = Kernel(SOURCE, region.hash, "cuda", (("BLOCK", block),))
                    begin = time.perf_counter()
                    verdict = pool.submit(Job(region, kernel, finalist=finalist, quick=not finalist)).result()
                    taken_s = time.perf_counter() - begin
                    row = {
                        "shape": shape, "block": block, "finalist": finalist, "judge_s": round(taken_s, 3),
                        "status": verdict.status.value, "evidence": verdict.evidence,
                        "timing": asdict(verdict.timing) if verdict.timing else None,
                        "stock_us": stock.times_us, "floor_us": stock.floor_us, "noise": stock.noise,
                        "reason": stock.reason, "prepare_s": round(prepare_s, 2),
                        "resources": verdict.resources,
                    }  # fmt: skip
                    rows.append(row)
                    print(json.dumps(row), flush=True)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
