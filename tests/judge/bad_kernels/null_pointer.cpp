// region: add
// expect: crashed
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
void k(const float* x, const float* w, float* y) {
  volatile float* nowhere = nullptr;
  *nowhere = 1.0f;
}
