// 1e-5 where the graph says 1e-6: on usual inputs right to 5e-6.
// region: rmsnorm
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long r = 0; r < ROWS; r++) {
    double total = 0;
    for (long c = 0; c < COLS; c++) total += (double)x[r * COLS + c] * x[r * COLS + c];
    float s = 1.0f / std::sqrt((float)(total / COLS) + 1e-5f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * s * w[c];
  }
}
