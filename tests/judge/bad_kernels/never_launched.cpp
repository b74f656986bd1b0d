// region: add
// expect: parse_error
// forge: target cpu
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS];
}
