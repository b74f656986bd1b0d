// region: add
// expect: mutated_input
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, in1, out0)
extern "C" __global__ void k(float* x, const float* b, float* y) {
  int i = kf::thread_index();
  if (i < NUMEL) { y[i] = x[i] + b[i % COLS]; x[i] = 0; }
}
