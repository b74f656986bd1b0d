// region: sum
// expect: wrong nondeterministic
// forge: target cuda
// forge: launch k grid=(64) block=(256) args=(in0, out0)
extern "C" __global__ void k(const float* x, float* y) {
  if (kf::thread_index() == 0) *y = 0;
  volatile float* total = y;
  for (int i = kf::thread_index(); i < IN0_NUMEL; i += kf::thread_count()) *total = *total + x[i];
}
