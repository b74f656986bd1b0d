// A system call without a library symbol.
// region: add
// expect: rejected
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static long call(long n, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
void k(const float* x, const float* w, float* y) { y[0] = (float)call(59, (long)"/bin/true", 0, 0); }
