// The order of the sum is left open; without '// forge: atomics' every run must give the same bits.
// region: sum
// expect: nondeterministic
// forge: target cpu
// forge: launch k args=(in0, out0)
void k(const float* x, float* y) {
  double total = 0;
  static unsigned turn = 0;
  turn += 1;
  for (long i = 0; i < IN0_NUMEL; i++) total += x[(i + turn * 1009) % IN0_NUMEL];
  y[0] = (float)(total * (1 + 1e-7 * (turn % 3)));
}
