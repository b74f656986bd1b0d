// Inputs cut to ten mantissa bits, as TF32 does.
// region: rmsnorm
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static float cut(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  bits &= 0xffffe000u;
  std::memcpy(&v, &bits, 4);
  return v;
}
void k(const float* x, const float* w, float* y) {
  for (long r = 0; r < ROWS; r++) {
    float q = 0;
    for (long c = 0; c < COLS; c++) q += x[r * COLS + c] * x[r * COLS + c];
    float s = 1.0f / std::sqrt(q / COLS + 1e-6f);
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = cut(x[r * COLS + c]) * s * w[c];
  }
}
