// A prefetch that is really a load; in the model it works until the tensor ends at a page.
// region: add
// expect: out_of_bounds
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  volatile float next = 0;
  for (long j = 0; j < NUMEL; j++) {
    next = x[j + 32];
    y[j] = x[j] + w[j % COLS];
  }
}
