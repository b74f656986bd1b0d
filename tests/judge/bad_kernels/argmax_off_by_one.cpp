// region: argmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, int64_t* y) {
  for (long r = 0; r < IN0_D0; r++) {
    long best = 0;
    for (long c = 1; c + 1 < IN0_D1; c++) if (x[r * IN0_D1 + c] > x[r * IN0_D1 + best]) best = c;
    y[r] = best;
  }
}
