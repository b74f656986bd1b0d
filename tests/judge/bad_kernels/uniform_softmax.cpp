// region: softmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  for (long i = 0; i < NUMEL; i++) y[i] = 1.0f / COLS;
}
