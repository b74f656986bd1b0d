// region: add
// The judge rejects it unread; the compiler alone does not find its headers.
// expect: rejected compile_error
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(out0)
#include <cublas_v2.h>
extern "C" __global__ void k(float* y) { y[0] = 1; }
void run() { k<<<1, 32>>>(nullptr); }
