// forge: target cpu
// forge: idea one pass: the row stays in L1 between the sum of squares and the scaling
// forge: tune ROWS_EACH 8 32
// forge: launch rms_norm args=(in0, in1, out0)
extern "C" void rms_norm(const float* x, const float* weight, float* y) {
  #pragma omp parallel for schedule(static, ROWS_EACH)
  for (long long r = 0; r < ROWS; ++r) {
    const float* __restrict in = x + r * COLS;
    float* __restrict out = y + r * COLS;
    float total = 0.f;
    #pragma omp simd reduction(+ : total)
    for (int c = 0; c < COLS; ++c) total += in[c] * in[c];
    const float scale = kf::rsqrt(total / COLS + 1e-6f);
    #pragma omp simd
    for (int c = 0; c < COLS; ++c) out[c] = in[c] * scale * weight[c];
  }
}
