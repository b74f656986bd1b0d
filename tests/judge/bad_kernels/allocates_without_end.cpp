// region: add
// expect: crashed
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  for (long i = 0; i < 100000; i++) {
    char* block = new char[1 << 26];
    ((volatile char*)block)[0] = 1;
  }
}
