// region: softmax
// forge: target cuda
// forge: idea the whole row in 128 KB of dynamic shared memory
// forge: launch k grid=(IN0_D0) block=(1024) smem=COLS*4 args=(in0, out0)
__device__ float all(float value, bool is_max) {
  __shared__ float parts[32];
  __syncthreads();
  for (int s = 16; s; s /= 2) {
    const float other = __shfl_xor_sync(~0u, value, s);
    value = is_max ? kf::max(value, other) : value + other;
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < 32; i++) value = is_max ? kf::max(value, parts[i]) : value + parts[i];
  return value;
}
extern "C" __global__ void k(const float* x, float* y) {
  extern __shared__ float row[];
  x += (int64_t)blockIdx.x * COLS;
  y += (int64_t)blockIdx.x * COLS;
  float top = -kf::inf, total = 0;
  for (int c = threadIdx.x; c < COLS; c += 1024) { row[c] = x[c]; top = kf::max(top, row[c]); }
  top = all(top, true);
  for (int c = threadIdx.x; c < COLS; c += 1024) { row[c] = kf::exp(row[c] - top); total += row[c]; }
  total = all(total, false);
  for (int c = threadIdx.x; c < COLS; c += 1024) y[c] = row[c] / total;
}
