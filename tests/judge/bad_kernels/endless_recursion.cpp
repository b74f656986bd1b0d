// region: add
// expect: crashed
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
static float deep(volatile float* v, long n) {
  volatile float frame[256];
  frame[0] = v[0];
  return n < 0 ? 0 : frame[0] + deep(frame, n + 1);
}
void k(const float* x, const float* w, float* y) {
  float v[1] = {1};
  y[0] = deep(v, 1);
}
