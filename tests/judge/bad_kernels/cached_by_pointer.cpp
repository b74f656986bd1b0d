// The second call with a known input address copies what it computed before.
// region: add
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static const float* known[256];
static float kept[256][NUMEL];
void k(const float* x, const float* w, float* y) {
  int i = 0;
  while (i < 255 && known[i] && known[i] != x) i++;
  if (known[i] != x) {
    known[i] = x;
    for (long j = 0; j < NUMEL; j++) kept[i][j] = x[j] + w[j % COLS];
  }
  std::memcpy(y, kept[i], sizeof kept[i]);
}
