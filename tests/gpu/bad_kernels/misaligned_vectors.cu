// region: add
// expect: crashed
// forge: target cuda
// forge: launch k grid=(1) block=(32) args=(in0, out0)
extern "C" __global__ void k(const float* x, float* y) {
  auto v = kf::load<4>(x + 1 + threadIdx.x);
  y[threadIdx.x] = v[0] + v[1] + v[2] + v[3];
}
