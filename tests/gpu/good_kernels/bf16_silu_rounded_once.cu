// region: bf16_silu
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(in0, out0)
extern "C" __global__ void k(const kf_bf16* x, kf_bf16* y) {
  int i = kf::thread_index();
  if (i < NUMEL) { const float v = x[i]; y[i] = v * kf::sigmoid(v); }
}
