// region: sum
// expect: wrong nondeterministic
// forge: target cuda
// forge: workspace total float32 1
// forge: launch k grid=(1) block=(1) args=(in0, total, out0)
extern "C" __global__ void k(const float* x, float* total, float* y) {
  for (int i = 0; i < IN0_NUMEL; i++) *total += x[i];
  *y = *total;
}
