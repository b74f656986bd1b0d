// region: add
// expect: parse_error
// forge: target cuda
// forge: launch k grid=(1) block=(512) args=(out0)
extern "C" __global__ void __launch_bounds__(128) k(float* y) { y[0] = 1; }
