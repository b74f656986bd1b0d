// region: sum
// forge: target cpu
// forge: atomics
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  float total = 0;
#pragma omp parallel num_threads(2)
  {
    float mine = 0;
#pragma omp for schedule(dynamic, 64)
    for (long i = 0; i < IN0_NUMEL; i++) mine += x[i];
#pragma omp atomic
    total += mine;
  }
  y[0] = total;
}
