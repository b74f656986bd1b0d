// forge: target cuda
// forge: idea a block per row, 16-byte accesses, the row stays in registers between sum and scaling
// forge: tune BLOCK 256 128
// forge: launch rms_norm grid=(ROWS) block=(BLOCK) args=(in0, in1, out0)
constexpr int VECTORS = COLS / 4, EACH = (VECTORS + BLOCK - 1) / BLOCK;
extern "C" __global__ void __launch_bounds__(BLOCK) rms_norm(const float* x, const float* weight, float* y) {
  const float4* in = reinterpret_cast<const float4*>(x + (long long)blockIdx.x * COLS);
  const float4* scale_by = reinterpret_cast<const float4*>(weight);
  float4* out = reinterpret_cast<float4*>(y + (long long)blockIdx.x * COLS);
  __shared__ float sums[BLOCK / 32];
  float4 v[EACH];
  float total = 0.f;
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int i = threadIdx.x + k * BLOCK;
    v[k] = i < VECTORS ? in[i] : make_float4(0.f, 0.f, 0.f, 0.f);
    total += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
  }
  for (int k = 16; k; k /= 2) total += __shfl_xor_sync(~0u, total, k);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = total;
  __syncthreads();
  total = 0.f;
  for (int k = 0; k < BLOCK / 32; ++k) total += sums[k];
  const float scale = rsqrtf(total / COLS + 1e-6f);
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int i = threadIdx.x + k * BLOCK;
    if (i < VECTORS) {
      const float4 w = scale_by[i];
      out[i] = make_float4(v[k].x * scale * w.x, v[k].y * scale * w.y, v[k].z * scale * w.z, v[k].w * scale * w.w);
    }
  }
}
