// region: add
// expect: mutated_input
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS];
  x[NUMEL / 2] = 7.0f;
}
