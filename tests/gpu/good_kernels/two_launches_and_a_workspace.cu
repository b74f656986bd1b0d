// region: rmsnorm
// forge: target cuda
// forge: workspace scale float32 ROWS
// forge: launch stats grid=(ROWS) block=(32) args=(in0, scale)
// forge: launch apply grid=(ROWS) block=(128) args=(in0, in1, scale, out0)
extern "C" __global__ void stats(const float* x, float* scale) {
  x += blockIdx.x * COLS;
  float total = 0;
  for (int c = threadIdx.x; c < COLS; c += 32) total += x[c] * x[c];
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (threadIdx.x == 0) scale[blockIdx.x] = 1.0f / kf::sqrt(total / COLS + 1e-6f);
}
extern "C" __global__ void apply(const float* x, const float* w, const float* scale, float* y) {
  for (int c = threadIdx.x; c < COLS; c += 128) {
    const int i = blockIdx.x * COLS + c;
    y[i] = x[i] * scale[blockIdx.x] * w[c];
  }
}
