// region: add
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = w[j % COLS];
  for (long j = 0; j < NUMEL; j++) y[j] += x[j];
}
