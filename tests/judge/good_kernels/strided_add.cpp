// region: transposed_add
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < OUT0_D1; j++)
    for (long i = 0; i < OUT0_D0; i++)
      y[i * OUT0_S0 + j * OUT0_S1] = x[i * IN0_S0 + j * IN0_S1] + w[i * IN1_S0 + j * IN1_S1];
}
