// region: softmax
// expect: wrong
// forge: target cuda
// forge: launch k grid=(IN0_D0) block=(1) args=(in0, out0)
extern "C" __global__ void k(const float* x, float* y) {
  x += (long long)blockIdx.x * COLS; y += (long long)blockIdx.x * COLS;
  float total = 0;
  for (int c = 0; c < COLS; c++) total += kf::exp(x[c]);
  for (int c = 0; c < COLS; c++) y[c] = kf::exp(x[c]) / total;
}
