// region: rmsnorm
// expect: wrong
// forge: target cuda
// forge: launch k grid=(ROWS) block=(1) args=(in0, in1, out0)
__device__ float cut(float x) { return kf::number(kf::bits(x) & 0xffffe000u); }
extern "C" __global__ void k(const float* x, const float* w, float* y) {
  x += blockIdx.x * COLS; y += blockIdx.x * COLS;
  float total = 0;
  for (int c = 0; c < COLS; c++) total += cut(x[c]) * cut(x[c]);
  const float scale = kf::rsqrt(total / COLS + 1e-6f);
  for (int c = 0; c < COLS; c++) y[c] = cut(x[c]) * scale * w[c];
}
