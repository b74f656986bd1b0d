// region: add
// expect: parse_error
// forge: target cuda
// forge: launch k grid=(1) block=(32) smem=300*1024 args=(out0)
extern "C" __global__ void k(float* y) { y[0] = 1; }
