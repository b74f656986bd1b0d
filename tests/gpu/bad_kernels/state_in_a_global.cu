// region: add
// expect: wrong nondeterministic
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, in1, out0)
__device__ float kept[NUMEL];
__device__ int filled;
extern "C" __global__ void k(const float* x, const float* b, float* y) {
  int i = kf::thread_index();
  if (i >= NUMEL) return;
  if (filled < NUMEL) { kept[i] = x[i] + b[i % COLS]; atomicAdd(&filled, 1); }
  y[i] = kept[i];
}
