// region: add
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static float drift = 0;
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS] + drift;
  drift += 0.25f;
}
