// region: rmsnorm
// expect: wrong
// forge: target cpu
// forge: workspace partial float32 ROWS
// forge: launch k args=(in0, in1, partial, out0)
void k(const float* x, const float* w, float* partial, float* y) {
  for (long r = 0; r < ROWS; r++) {
    for (long c = 0; c < COLS; c++) partial[r] += x[r * COLS + c] * x[r * COLS + c];
    float s = 1.0f / std::sqrt(partial[r] / COLS + 1e-6f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * s * w[c];
  }
}
