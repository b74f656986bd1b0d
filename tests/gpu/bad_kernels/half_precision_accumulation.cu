// region: sum
// expect: wrong
// forge: target cuda
// forge: launch k grid=(1) block=(1) args=(in0, out0)
extern "C" __global__ void k(const float* x, float* y) {
  kf_f16 total(0.f);
  for (int i = 0; i < IN0_NUMEL; i++) total = float(total) + x[i];
  *y = total;
}
