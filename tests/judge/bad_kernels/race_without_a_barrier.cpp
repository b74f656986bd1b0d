// region: sum
// expect: wrong nondeterministic
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  volatile float total = 0;
#pragma omp parallel for num_threads(2)
  for (long i = 0; i < IN0_NUMEL; i++)
    for (int again = 0; again < 50; again++) total = total + x[i] * 0.02f;
  y[0] = total;
}
