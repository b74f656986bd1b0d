// region: add
// expect: unwritten
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long i = 0; i + 8 <= NUMEL; i += 8)
    for (long j = i; j < i + 8; j++) y[j] = x[j] + w[j % COLS];
}
