// region: add
// expect: out_of_bounds
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, in1, out0)
extern "C" __global__ void k(const float* x, const float* b, float* y) {
  int i = kf::thread_index();
  if (i < NUMEL) y[i] = x[i] + b[i % COLS] + (x[i + 4096] == 12345.0f ? 1.0f : 0.0f);
}
