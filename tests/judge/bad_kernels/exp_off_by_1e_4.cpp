// A short polynomial in place of exp: a relative error of 1e-4 at most.
// region: softmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
static float short_exp(float x) {
  if (x != x) return x;
  if (x < -87.0f) return 0.0f;
  float n = std::floor(x * 1.44269504f + 0.5f), r = x - n * 0.693147181f;
  float p = 1.0f + r * (0.99995f + r * (0.5f + r * 0.1666f));
  return std::ldexp(p, (int)n);
}
void k(const float* x, float* y) {
  for (long r = 0; r < ROWS; r++) {
    const float* in = x + r * COLS;
    float top = in[0];
    for (long c = 1; c < COLS; c++) top = in[c] > top || in[c] != in[c] ? in[c] : top;
    double total = 0;
    for (long c = 0; c < COLS; c++) total += y[r * COLS + c] = short_exp(in[c] - top);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (float)(y[r * COLS + c] / total);
  }
}
