// region: relu
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, out0)
extern "C" __global__ void k(const float* x, float* y) {
  int i = kf::thread_index();
  if (i < NUMEL) y[i] = kf::max(x[i], 0.0f);
}
