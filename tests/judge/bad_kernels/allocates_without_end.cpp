// region: add
// expect: crashed timeout
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long i = 0; i < 100000; i++) {
    char* block = new char[1 << 26];
    for (long j = 0; j < (1 << 26); j += 4096) ((volatile char*)block)[j] = 1;
  }
}
