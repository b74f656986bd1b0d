// region: softmax
// expect: wrong
// forge: target cuda
// forge: launch k grid=(cdiv(NUMEL, 256)) block=(256) args=(out0)
extern "C" __global__ void k(float* y) { int i = kf::thread_index(); if (i < NUMEL) y[i] = 1.0f / COLS; }
