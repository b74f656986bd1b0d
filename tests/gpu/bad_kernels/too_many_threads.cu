// region: add
// expect: parse_error
// forge: target cuda
// forge: launch k grid=(1) block=(2048) args=(out0)
extern "C" __global__ void k(float* y) { y[0] = 1; }
