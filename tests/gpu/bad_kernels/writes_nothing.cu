// region: add
// expect: unwritten
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(out0)
extern "C" __global__ void k(float* y) {}
