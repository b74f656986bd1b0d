// The output is transposed; writing it as if it were contiguous is wrong.
// region: transposed_add
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long i = 0; i < OUT0_D0; i++)
    for (long j = 0; j < OUT0_D1; j++) y[i * OUT0_D1 + j] = x[i * IN0_S0 + j * IN0_S1] + w[j];
}
