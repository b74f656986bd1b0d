// region: add
// expect: rejected
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static float table[8];
__attribute__((constructor)) static void early() { table[0] = 1; }
void k(const float* x, const float* w, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS] * table[0];
}
