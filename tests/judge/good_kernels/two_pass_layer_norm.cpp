// region: layernorm
// forge: target cpu
// forge: launch k args=(in0, in1, in2, out0)
void k(const float* x, const float* w, const float* b, float* y) {
#pragma omp parallel for num_threads(2)
  for (long r = 0; r < ROWS; r++) {
    const float* p = x + r * COLS;
    float s = 0, q = 0;
#pragma omp simd reduction(+ : s)
    for (long c = 0; c < COLS; c++) s += p[c];
    float m = s / COLS;
#pragma omp simd reduction(+ : q)
    for (long c = 0; c < COLS; c++) q += (p[c] - m) * (p[c] - m);
    float k = 1.0f / std::sqrt(q / COLS + 1e-5f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = (p[c] - m) * k * w[c] + b[c];
  }
}
