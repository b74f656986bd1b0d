// region: add
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
#pragma omp parallel for num_threads(2)
  for (long r = 0; r < ROWS; r++)
    for (long c = 0; c < COLS; c++) y[r * COLS + c] = x[r * COLS + c] + w[c];
}
