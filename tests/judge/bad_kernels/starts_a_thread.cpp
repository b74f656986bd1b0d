// Would return before the work is done.
// region: add
// expect: rejected
// forge: target cpu
// forge: launch k args=(in0, in1, out0)
#include <thread>
void k(const float* x, const float* w, float* y) {
  std::thread([=] { for (long j = 0; j < NUMEL; j++) y[j] = x[j] + w[j % COLS]; }).detach();
}
