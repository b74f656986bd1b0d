// region: rmsnorm
// forge: target cpu
// forge: workspace scale float32 ROWS
// forge: launch stats args=(in0, scale)
// forge: launch apply args=(in0, in1, scale, out0)
void stats(const float* x, float* scale) {
  for (long r = 0; r < ROWS; r++) {
    float q = 0;
#pragma omp simd reduction(+ : q)
    for (long c = 0; c < COLS; c++) q += x[r * COLS + c] * x[r * COLS + c];
    scale[r] = 1.0f / std::sqrt(q / COLS + 1e-6f);
  }
}
void apply(const float* x, const float* w, const float* scale, float* y) {
  for (long r = 0; r < ROWS; r++)
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * scale[r] * w[c];
}
