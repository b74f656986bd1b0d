// region: add
// forge: target cuda
// forge: tune BLOCK 256 128
// forge: launch k grid=(cdiv(NUMEL, BLOCK)) block=(BLOCK) args=(in0, in1, out0)
extern "C" __global__ void k(const float* __restrict__ x, const float* __restrict__ b, float* y) {
  int64_t i = kf::thread_index();
  if (i < NUMEL) y[i] = x[i] + b[i % COLS];
}
