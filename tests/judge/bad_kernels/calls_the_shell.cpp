// region: add
// expect: rejected
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
#include <cstdlib>
void k(const float* x, const float* w, float* y) { y[0] = std::system("true"); }
