// NaN + x is NaN, a large number + x the same large number: the poison stays as it was.
// region: add
// expect: unwritten
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] += x[j] + w[j % COLS];
}
