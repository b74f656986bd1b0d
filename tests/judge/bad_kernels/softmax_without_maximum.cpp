// region: softmax
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  for (long r = 0; r < ROWS; r++) {
    double total = 0;
    for (long c = 0; c < COLS; c++) total += y[r * COLS + c] = std::exp(x[r * COLS + c]);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (float)(y[r * COLS + c] / total);
  }
}
