// region: add
// expect: timeout
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(out0)
extern "C" __global__ void k(float* y) { volatile float* spin = y; while (*spin != 12345.0f) {} }
