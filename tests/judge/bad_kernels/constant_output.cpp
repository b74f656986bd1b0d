// region: rmsnorm
// expect: wrong
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long i = 0; i < NUMEL; i++) y[i] = 0.0f;
}
