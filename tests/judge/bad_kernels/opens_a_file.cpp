// region: add
// expect: rejected
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
#include <cstdio>
void k(const float* x, const float* w, float* y) { y[0] = std::fopen("/etc/hostname", "r") ? 1 : 0; }
