// region: rmsnorm
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long r = 0; r < ROWS; r++) {
    kf_f16 q = 0;
    for (long c = 0; c < COLS; c++) q = (kf_f16)((float)q + x[r * COLS + c] * x[r * COLS + c]);
    float s = 1.0f / std::sqrt((float)q / COLS + 1e-6f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * s * w[c];
  }
}
