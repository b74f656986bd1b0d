// Uses an input as scratch and restores it: other threads of the model would see it changed.
// region: add
// expect: mutated_input
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, float* w, float* y) {
  for (long j = 0; j < COLS; j++) w[j] = w[j] * 2;
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS] / 2;
  for (long j = 0; j < COLS; j++) w[j] = w[j] / 2;
}
