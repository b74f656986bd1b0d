// exp by range reduction and a polynomial of degree 6 (about 2 ulp); NaN and inf kept.
// region: softmax
// forge: target cpu
// forge: launch k args=(in0, out0)
static inline float fast_exp(float v) {
  v = v < -87.0f ? -87.0f : v;  // false for NaN
  float n = std::nearbyint(v * 1.44269504f);
  float f = v - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.0f + f * (1.0f + f * (0.5f + f * (1.66666672e-1f + f * (4.16666456e-2f + f * (8.33336506e-3f + f * 1.39999e-3f)))));
  int32_t bits = (int32_t(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, 4);
  return p * scale;
}
void k(const float* x, float* y) {
#pragma omp parallel for num_threads(2)
  for (long r = 0; r < ROWS; r++) {
    const float* p = x + r * COLS;
    float top = -INFINITY;
    bool lost = false;
    for (long c = 0; c < COLS; c++) { top = p[c] > top ? p[c] : top; lost |= p[c] != p[c]; }
    // A row with NaN, +inf or only -inf is NaN everywhere, as eager's is.
    if (lost || std::isinf(top)) {
      for (long c = 0; c < COLS; c++) y[r * COLS + c] = NAN;
      continue;
    }
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (long c = 0; c < COLS; c++) total += y[r * COLS + c] = p[c] == -INFINITY ? 0.0f : fast_exp(p[c] - top);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] /= total;
  }
}
