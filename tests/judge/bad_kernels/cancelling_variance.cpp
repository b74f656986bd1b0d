// E[x2] - E[x]2 in float loses every digit when the mean is large.
// region: layernorm
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, in2, out0)
void k(const float* x, const float* w, const float* b, float* y) {
  for (long r = 0; r < ROWS; r++) {
    float s = 0, q = 0;
    for (long c = 0; c < COLS; c++) { float v = x[r * COLS + c]; s += v; q += v * v; }
    float m = s / COLS, k = 1.0f / std::sqrt(std::max(q / COLS - m * m, 0.0f) + 1e-5f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (x[r * COLS + c] - m) * k * w[c] + b[c];
  }
}
