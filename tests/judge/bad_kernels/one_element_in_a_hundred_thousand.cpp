// One element of 131 072 is 0.1 % too large.
// region: softmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  for (long r = 0; r < ROWS; r++) {
    const float* in = x + r * COLS;
    float top = in[0];
    for (long c = 1; c < COLS; c++) top = in[c] > top ? in[c] : top;
    double total = 0;
    for (long c = 0; c < COLS; c++) total += std::exp(in[c] - top);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (float)(std::exp(in[c] - top) / total);
  }
  y[2 * COLS + 77] *= 1.001f;
}
