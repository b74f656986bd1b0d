// region: relu
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  for (long j = 0; j < NUMEL; j++) y[j] = x[j] < 0 ? 0 : x[j];
}
