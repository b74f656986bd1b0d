// region: transposed_add
// forge: target cuda
// forge: launch k grid=(IN0_D0) block=(64) args=(in0, in1, out0)
extern "C" __global__ void k(const float* x, const float* b, float* y) {
  const int r = blockIdx.x, c = threadIdx.x;
  if (c < IN0_D1) y[r * OUT0_S0 + c * OUT0_S1] = x[r * IN0_S0 + c * IN0_S1] + b[r * IN1_S0 + c * IN1_S1];
}
