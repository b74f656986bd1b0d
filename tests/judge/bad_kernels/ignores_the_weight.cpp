// Right on the recorded weights, which are all ones.
// region: rmsnorm
// expect: wrong
// stats: ones
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long r = 0; r < ROWS; r++) {
    float q = 0;
    for (long c = 0; c < COLS; c++) q += x[r * COLS + c] * x[r * COLS + c];
    float s = 1.0f / std::sqrt(q / COLS + 1e-6f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] * s;
  }
}
