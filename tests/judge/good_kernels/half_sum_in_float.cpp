// region: half_sum
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const kf_f16* x, kf_f16* y) {
  for (long r = 0; r < IN0_D0; r++) {
    float q = 0;
    for (long c = 0; c < IN0_D1; c++) q += (float)x[r * IN0_D1 + c];
    y[r] = (kf_f16)q;
  }
}
