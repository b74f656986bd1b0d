// region: layernorm
// forge: target cpu
// forge: launch k args=(in0, in1, in2, out0)
void k(const float* x, const float* w, const float* b, float* y) {
  for (long r = 0; r < ROWS; r++) {
    float m = 0, q = 0;
    for (long c = 0; c < COLS; c++) {
      float v = x[r * COLS + c], d = v - m;
      m += d / (c + 1);
      q += d * (v - m);
    }
    float k = 1.0f / std::sqrt(q / COLS + 1e-5f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (x[r * COLS + c] - m) * k * w[c] + b[c];
  }
}
