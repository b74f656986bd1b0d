// region: add
// expect: parse_error
// forge: target cpu
// forge: tolerance 1e-1
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS];
}
