// region: add
// expect: wrong nondeterministic
// forge: target cuda
// forge: launch k grid=(1) block=(1024) args=(in0, in1, out0)
__device__ float kept[NUMEL];
__device__ const float* seen;
extern "C" __global__ void k(const float* x, const float* b, float* y) {
  const bool known = seen == x;
  __syncthreads();
  for (int i = threadIdx.x; i < NUMEL; i += 1024) {
    if (!known) kept[i] = x[i] + b[i % COLS];
    y[i] = kept[i];
  }
  if (threadIdx.x == 0) seen = x;
}
