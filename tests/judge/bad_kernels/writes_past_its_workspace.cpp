// region: rmsnorm
// expect: out_of_bounds
// forge: target cpu
// forge: workspace partial float32 ROWS
// forge: launch k args=(in0, in1, partial, out0)
void k(const float* x, const float* w, float* partial, float* y) {
  for (long r = 0; r < ROWS; r++) {
    float q = 0;
    for (long c = 0; c < COLS; c++) q += x[r * COLS + c] * x[r * COLS + c];
    partial[r + 1] = 1.0f / std::sqrt(q / COLS + 1e-6f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * partial[r + 1] * w[c];
  }
}
