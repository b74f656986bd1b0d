// Honest for as long as a correctness test usually lasts, then does nothing.
// region: add
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static int calls = 0;
void k(const float* x, const float* w, float* y) {
  if (calls++ > 60) return;
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS];
}
