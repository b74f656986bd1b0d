// region: add
// expect: out_of_bounds
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS];
  y[-1] = 0;
}
