// The denominator lacks the last of 32 768 values: on usual inputs right to 3e-5.
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
    for (long c = 0; c < COLS - 1; c++) total += std::exp(in[c] - top);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (float)(std::exp(in[c] - top) / total);
  }
}
