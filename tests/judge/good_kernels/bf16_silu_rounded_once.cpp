// region: bf16_silu
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const kf_bf16* x, kf_bf16* y) {
  for (long j = 0; j < NUMEL; j++) { float v = (float)x[j]; y[j] = kf_bf16(v / (1.0f + std::exp(-v))); }
}
