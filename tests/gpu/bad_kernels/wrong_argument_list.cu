// region: add
// expect: compile_error
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(in0, out0, NUMEL)
extern "C" __global__ void k(const float* x, float* y) { y[0] = x[0]; }
