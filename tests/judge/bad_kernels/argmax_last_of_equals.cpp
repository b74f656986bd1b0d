// torch documents that the first of equal maxima is named.
// region: argmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, int64_t* y) {
  for (long r = 0; r < IN0_D0; r++) {
    long best = 0;
    const float* p = x + r * IN0_D1;
    for (long c = 1; c < IN0_D1; c++) {
      if (p[best] != p[best]) break;
      if (p[c] >= p[best] || p[c] != p[c]) best = c;
    }
    y[r] = best;
  }
}
