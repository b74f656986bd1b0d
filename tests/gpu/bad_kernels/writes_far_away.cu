// region: add
// expect: out_of_bounds
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(out0)
extern "C" __global__ void k(float* y) { y[threadIdx.x + (1ll << 40)] = 1; }
