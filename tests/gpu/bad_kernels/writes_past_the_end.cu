// region: add
// expect: out_of_bounds
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, in1, out0)
extern "C" __global__ void k(const float* x, const float* b, float* y) {
  int i = kf::thread_index();
  y[i] = i < NUMEL ? x[i] + b[i % COLS] : 0.0f;
}
