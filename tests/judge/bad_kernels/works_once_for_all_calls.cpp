// The first call computes; later ones with the same first value copy what it kept.
// region: relu
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
static float kept[NUMEL], key = -1e38f;
void k(const float* x, float* y) {
  if (key != x[0]) {
    for (long j = 0; j < NUMEL; j++) kept[j] = x[j] > 0 || x[j] != x[j] ? x[j] : 0;
    key = x[0];
  }
  for (long j = 0; j < NUMEL; j++) y[j] = kept[j];
}
