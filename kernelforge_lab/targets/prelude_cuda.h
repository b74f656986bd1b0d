// Included before every cuda kernel: the 16-bit floating types and mathematics of prelude_cpu.h, so that
// one arithmetic has one spelling on both targets. Needs no header of the CUDA toolkit: NVRTC finds none
// on a machine that only has a driver.
#pragma once

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#define INT64_C(value) value##LL
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f

// The part of the standard library that device code uses and NVRTC does not bring along.
namespace std {

template <class T> __device__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> __device__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }

template <class T> struct numeric_limits {
  static constexpr bool is_integer = true, is_signed = T(-1) < T(0);
  static __device__ constexpr T max() {
    return is_signed ? T((uint64_t(1) << (8 * sizeof(T) - 1)) - 1) : T(~T(0));
  }
  static __device__ constexpr T min() { return is_signed ? T(-max() - 1) : T(0); }
  static __device__ constexpr T lowest() { return min(); }
};
template <> struct numeric_limits<bool> {
  static constexpr bool is_integer = true, is_signed = false;
  static __device__ constexpr bool max() { return true; }
  static __device__ constexpr bool min() { return false; }
  static __device__ constexpr bool lowest() { return false; }
};
template <> struct numeric_limits<float> {
  static constexpr bool is_integer = false, is_signed = true;
  static __device__ constexpr float max() { return FLT_MAX; }
  static __device__ constexpr float min() { return FLT_MIN; }
  static __device__ constexpr float lowest() { return -FLT_MAX; }
  static __device__ constexpr float epsilon() { return FLT_EPSILON; }
  static __device__ constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000); }
  static __device__ constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000); }
};
template <> struct numeric_limits<double> {
  static constexpr bool is_integer = false, is_signed = true;
  static __device__ constexpr double max() { return 1.7976931348623157e+308; }
  static __device__ constexpr double min() { return 2.2250738585072014e-308; }
  static __device__ constexpr double lowest() { return -max(); }
  static __device__ constexpr double epsilon() { return 2.2204460492503131e-16; }
  static __device__ constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000); }
  static __device__ constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000); }
};

using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atan2, ::atanh, ::cbrt, ::ceil, ::copysign, ::cos, ::cosh;
using ::erf, ::erfc, ::exp, ::exp2, ::expm1, ::fabs, ::floor, ::fma, ::fmax, ::fmin, ::fmod, ::hypot;
using ::ldexp, ::lgamma, ::log, ::log10, ::log1p, ::log2, ::nearbyint, ::pow, ::rint, ::round, ::sin, ::sinh;
using ::sqrt, ::tan, ::tanh, ::tgamma, ::trunc;

}  // namespace std
#else
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#endif

#define KF_DEVICE static __device__ __forceinline__
#define KF_MEMBER __device__ __forceinline__

namespace kf {

KF_DEVICE uint32_t bits(float value) { return __float_as_uint(value); }
KF_DEVICE float number(uint32_t word) { return __uint_as_float(word); }

}  // namespace kf

// bfloat16: one rounding instruction each way (sm_80 and later).
struct alignas(2) kf_bf16 {
  uint16_t bits;
  kf_bf16() = default;
  KF_MEMBER kf_bf16(float value) : bits(round(value)) {}
  KF_MEMBER kf_bf16& operator=(float value) {
    bits = round(value);
    return *this;
  }
  static KF_MEMBER uint16_t round(float value) {
    uint16_t word;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(word) : "f"(value));
    return word;
  }
  KF_MEMBER operator float() const { return kf::number(uint32_t(bits) << 16); }
};

struct alignas(2) kf_f16 {
  uint16_t bits;
  kf_f16() = default;
  KF_MEMBER kf_f16(float value) : bits(round(value)) {}
  KF_MEMBER kf_f16& operator=(float value) {
    bits = round(value);
    return *this;
  }
  static KF_MEMBER uint16_t round(float value) {
    uint16_t word;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(word) : "f"(value));
    return word;
  }
  KF_MEMBER operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};

namespace kf {

static constexpr float inf = __builtin_bit_cast(float, 0x7f800000);

// N neighbours as one access: 16 bytes at most, and the address a multiple of their size.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {
  T at[N];
  KF_MEMBER T& operator[](int i) { return at[i]; }
  KF_MEMBER const T& operator[](int i) const { return at[i]; }
};

template <int N, class T> KF_DEVICE Vec<T, N> load(const T* from) {
  return *reinterpret_cast<const Vec<T, N>*>(from);
}

template <int N, class T> KF_DEVICE void store(T* to, const Vec<T, N>& values) {
  *reinterpret_cast<Vec<T, N>*>(to) = values;
}

// Floats rounded to 16 bits, two by one instruction.
template <int N> KF_DEVICE void pack_pairs(Vec<kf_bf16, N>& packed, const float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
        : "=r"(reinterpret_cast<unsigned*>(&packed)[i])
        : "f"(values[2 * i + 1]), "f"(values[2 * i]));
  }
}
template <int N> KF_DEVICE void pack_pairs(Vec<kf_f16, N>& packed, const float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;"
        : "=r"(reinterpret_cast<unsigned*>(&packed)[i])
        : "f"(values[2 * i + 1]), "f"(values[2 * i]));
  }
}
template <int N> KF_DEVICE void store(kf_bf16* to, const float (&values)[N]) {
  Vec<kf_bf16, N> packed;
  pack_pairs(packed, values);
  store(to, packed);
}
template <int N> KF_DEVICE void store(kf_f16* to, const float (&values)[N]) {
  Vec<kf_f16, N> packed;
  pack_pairs(packed, values);
  store(to, packed);
}

// The same for data that is not used again: it leaves the caches first.
template <int N, class T> KF_DEVICE Vec<T, N> load_once(const T* from) {
  constexpr int bytes = sizeof(T) * N;
  Vec<T, N> values;
  if constexpr (bytes % 16 == 0) {
#pragma unroll
    for (int i = 0; i < bytes / 16; ++i)
      reinterpret_cast<uint4*>(&values)[i] = __ldcs(reinterpret_cast<const uint4*>(from) + i);
  } else if constexpr (bytes == 8) {
    *reinterpret_cast<uint2*>(&values) = __ldcs(reinterpret_cast<const uint2*>(from));
  } else if constexpr (bytes == 4) {
    *reinterpret_cast<unsigned*>(&values) = __ldcs(reinterpret_cast<const unsigned*>(from));
  } else {
    values = load<N>(from);
  }
  return values;
}

template <int N, class T> KF_DEVICE void store_once(T* to, const Vec<T, N>& values) {
  constexpr int bytes = sizeof(T) * N;
  if constexpr (bytes % 16 == 0) {
#pragma unroll
    for (int i = 0; i < bytes / 16; ++i)
      __stcs(reinterpret_cast<uint4*>(to) + i, reinterpret_cast<const uint4*>(&values)[i]);
  } else if constexpr (bytes == 8) {
    __stcs(reinterpret_cast<uint2*>(to), *reinterpret_cast<const uint2*>(&values));
  } else if constexpr (bytes == 4) {
    __stcs(reinterpret_cast<unsigned*>(to), *reinterpret_cast<const unsigned*>(&values));
  } else {
    store(to, values);
  }
}

template <int N> KF_DEVICE void store_once(kf_bf16* to, const float (&values)[N]) {
  Vec<kf_bf16, N> packed;
  pack_pairs(packed, values);
  store_once(to, packed);
}
template <int N> KF_DEVICE void store_once(kf_f16* to, const float (&values)[N]) {
  Vec<kf_f16, N> packed;
  pack_pairs(packed, values);
  store_once(to, packed);
}

// Global thread index along x, in 64 bits: blockIdx.x * blockDim.x alone wraps at 2^32.
KF_DEVICE int64_t thread_index() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
KF_DEVICE int64_t thread_count() { return int64_t(gridDim.x) * blockDim.x; }

KF_DEVICE float exp(float x) { return ::expf(x); }
KF_DEVICE float log(float x) { return ::logf(x); }
KF_DEVICE float tanh(float x) { return ::tanhf(x); }
KF_DEVICE float sigmoid(float x) {
  // The hardware's reciprocal is good to one unit in the last place; 1 + exp(−x) is never denormal.
  float value;
  asm("rcp.approx.f32 %0, %1;" : "=f"(value) : "f"(1.f + ::expf(-x)));
  return value;
}
KF_DEVICE float erf(float x) { return ::erff(x); }
KF_DEVICE float log1p(float x) { return ::log1pf(x); }
KF_DEVICE float expm1(float x) { return ::expm1f(x); }
KF_DEVICE float sqrt(float x) { return ::sqrtf(x); }
KF_DEVICE float rsqrt(float x) { return ::rsqrtf(x); }

KF_DEVICE double exp(double x) { return ::exp(x); }
KF_DEVICE double log(double x) { return ::log(x); }
KF_DEVICE double tanh(double x) { return ::tanh(x); }
KF_DEVICE double sigmoid(double x) { return 1. / (1. + ::exp(-x)); }
KF_DEVICE double erf(double x) { return ::erf(x); }
KF_DEVICE double log1p(double x) { return ::log1p(x); }
KF_DEVICE double expm1(double x) { return ::expm1(x); }
KF_DEVICE double sqrt(double x) { return ::sqrt(x); }
KF_DEVICE double rsqrt(double x) { return ::rsqrt(x); }

// NaN-propagating, as torch.maximum and torch.minimum.
template <class T> KF_DEVICE T max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> KF_DEVICE T min(T a, T b) { return a < b || a != a ? a : b; }
template <class T> KF_DEVICE T abs(T x) { return x < T(0) ? T(-x) : x; }
KF_DEVICE float abs(float x) { return ::fabsf(x); }
KF_DEVICE double abs(double x) { return ::fabs(x); }
template <class T> KF_DEVICE T sign(T x) { return T((T(0) < x) - (x < T(0))); }

KF_DEVICE float floor(float x) { return ::floorf(x); }
KF_DEVICE double floor(double x) { return ::floor(x); }
KF_DEVICE float copysign(float x, float s) { return ::copysignf(x, s); }
KF_DEVICE double copysign(double x, double s) { return ::copysign(x, s); }

template <class T> KF_DEVICE T fmod(T a, T b) {
  if constexpr (!std::numeric_limits<T>::is_integer) {
    return sizeof(T) == 4 ? T(::fmodf(a, b)) : T(::fmod(double(a), double(b)));
  } else {
    return b == T(-1) ? T(0) : T(a % b);
  }
}

// Python's modulo and floor division (c10::div_floor_floating for floats).
template <class T> KF_DEVICE T remainder(T a, T b) {
  const T r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
}

template <class T> KF_DEVICE T floordiv(T a, T b) {
  if constexpr (!std::numeric_limits<T>::is_integer) {
    if (b == 0) return a / b;
    const T mod = fmod(a, b);
    T q = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) q -= 1;
    if (q == 0) return copysign(T(0), a / b);
    const T low = floor(q);
    return q - low > T(0.5) ? low + 1 : low;
  } else {
    if (b == T(-1)) return T(0 - a);
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
  }
}

// Integer powers by squaring; torch gives 0 for negative exponents unless the base is ±1.
template <class T> KF_DEVICE T pow(T base, T exponent) {
  if constexpr (!std::numeric_limits<T>::is_integer) {
    return sizeof(T) == 4 ? T(::powf(base, exponent)) : T(::pow(double(base), double(exponent)));
  } else {
    if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? T(exponent % 2 ? -1 : 1) : T(0);
    T result = 1;
    for (; exponent; exponent /= 2, base = T(base * base))
      if (exponent % 2) result = T(result * base);
    return result;
  }
}

// What a launch line passes against what the function takes: checked while compiling, see cuda_source.py.
template <class F> struct Signature;
template <class... P> struct Signature<void (*)(P...)> {
  static constexpr int arity = sizeof...(P);
};
template <int I, class F> struct Parameter;
template <class P, class... Rest> struct Parameter<0, void (*)(P, Rest...)> { using type = P; };
template <int I, class P, class... Rest> struct Parameter<I, void (*)(P, Rest...)> {
  using type = typename Parameter<I - 1, void (*)(Rest...)>::type;
};
template <class Taken, class Given> struct Fits { static constexpr bool value = false; };
template <class T> struct Fits<T*, T*> { static constexpr bool value = true; };
template <class T> struct Fits<const T*, T*> { static constexpr bool value = true; };
template <class T> struct Fits<void*, T*> { static constexpr bool value = true; };
template <class T> struct Fits<const void*, T*> { static constexpr bool value = true; };
template <> struct Fits<int, long long> { static constexpr bool value = true; };
template <> struct Fits<unsigned, long long> { static constexpr bool value = true; };
template <> struct Fits<long, long long> { static constexpr bool value = true; };
template <> struct Fits<unsigned long, long long> { static constexpr bool value = true; };
template <> struct Fits<long long, long long> { static constexpr bool value = true; };
template <> struct Fits<unsigned long long, long long> { static constexpr bool value = true; };

}  // namespace kf

// Teams: TEAM (a power of two) neighbouring threads of a block that work on one row.
namespace kf {

struct Sum { template <class T> KF_MEMBER T operator()(T a, T b) const { return a + b; } };
struct Product { template <class T> KF_MEMBER T operator()(T a, T b) const { return a * b; } };
struct Max { template <class T> KF_MEMBER T operator()(T a, T b) const { return a > b ? a : b; } };
struct Min { template <class T> KF_MEMBER T operator()(T a, T b) const { return a < b ? a : b; } };
struct Or { template <class T> KF_MEMBER T operator()(T a, T b) const { return T(a | b); } };
struct And { template <class T> KF_MEMBER T operator()(T a, T b) const { return T(a & b); } };

template <class T> struct Shuffled { using type = T; };
template <> struct Shuffled<bool> { using type = int; };
template <> struct Shuffled<int8_t> { using type = int; };
template <> struct Shuffled<uint8_t> { using type = int; };
template <> struct Shuffled<int16_t> { using type = int; };

// The lanes of this thread's team within its warp.
template <int TEAM> KF_DEVICE unsigned team_mask() {
  if constexpr (TEAM >= 32) return 0xffffffffu;
  return ((1u << (TEAM & 31)) - 1) << (threadIdx.x % 32 / TEAM * TEAM);
}

// Every thread of the team gets the same value, always combined in the same order.
template <int TEAM, class T, class Op> KF_DEVICE T team_reduce(T own, Op op) {
  using S = typename Shuffled<T>::type;
  constexpr int lanes = TEAM < 32 ? TEAM : 32;
  S value = own;
#pragma unroll
  for (int step = lanes / 2; step; step /= 2) value = op(value, __shfl_xor_sync(team_mask<TEAM>(), value, step));
  if constexpr (TEAM > 32) {
    constexpr int warps = TEAM / 32;
    __shared__ S each[warps];
    __syncthreads();
    if (threadIdx.x % 32 == 0) each[threadIdx.x / 32] = value;
    __syncthreads();
    value = each[threadIdx.x % warps];
#pragma unroll
    for (int step = warps / 2; step; step /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return T(value);
}

// Whether (b, at b) replaces (a, at a): larger (smaller), NaN above all, the first place among equals.
template <bool MAX, class T> KF_DEVICE bool wins(T b, int64_t at_b, T a, int64_t at_a) {
  if (at_b < 0) return false;
  if (at_a < 0) return true;
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a || nan_b) return nan_b && (!nan_a || at_b < at_a);
  if (a == b) return at_b < at_a;
  return MAX ? b > a : b < a;
}

template <int TEAM, bool MAX, class T> KF_DEVICE void team_arg(T& best, int64_t& at) {
  using S = typename Shuffled<T>::type;
  constexpr int lanes = TEAM < 32 ? TEAM : 32;
#pragma unroll
  for (int step = lanes / 2; step; step /= 2) {
    const T other = T(__shfl_xor_sync(team_mask<TEAM>(), S(best), step));
    const int64_t place = __shfl_xor_sync(team_mask<TEAM>(), at, step);
    if (wins<MAX>(other, place, best, at)) { best = other; at = place; }
  }
  if constexpr (TEAM > 32) {
    constexpr int warps = TEAM / 32;
    __shared__ T values[warps];
    __shared__ int64_t places[warps];
    __syncthreads();
    if (threadIdx.x % 32 == 0) { values[threadIdx.x / 32] = best; places[threadIdx.x / 32] = at; }
    __syncthreads();
    for (int k = 0; k < warps; ++k)
      if (wins<MAX>(values[k], places[k], best, at)) { best = values[k]; at = places[k]; }
  }
}

// Mean and sum of squared distances from it in one sweep, without losing digits to a large mean.
//
// A thread sums distances from a pivot, the mean of the first values it meets. Were the pivot far from
// the rest, the spread itself would be large: the relative error stays below (values per thread)·eps.
// Threads and blocks are merged pairwise (Chan, Golub, LeVeque 1979).
struct Moments {
  float mean = 0, spread = 0, count = 0, pivot = 0, gaps = 0, squares = 0;
  KF_MEMBER void merge(float other_mean, float other_spread, float other_count) {
    if (other_count == 0) return;
    const float total = count + other_count, gap = other_mean - mean, share = other_count / total;
    mean += gap * share;
    spread += other_spread + gap * gap * (count * share);
    count = total;
  }
  template <int N> KF_MEMBER void add(const float (&x)[N]) {
    if (count == 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) pivot += x[i] * (1.f / N);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float gap = x[i] - pivot;
      gaps += gap;
      squares += gap * gap;
    }
    count += N;
  }
  KF_MEMBER void settle() {
    if (count == 0) return;
    const float gap = gaps / count;
    mean = pivot + gap;
    spread = squares - gap * gaps;
    spread = spread < 0 ? 0 : spread;
  }
  // Thread 0 of a warp ends with the moments of all its lanes.
  KF_MEMBER void meet_warp() {
#pragma unroll
    for (int step = 16; step; step /= 2) {
      const float m = __shfl_down_sync(0xffffffffu, mean, step), s = __shfl_down_sync(0xffffffffu, spread, step);
      const float n = __shfl_down_sync(0xffffffffu, count, step);
      if (threadIdx.x % 32 + step < 32) merge(m, s, n);
    }
  }
  // Every lane gets what lane 0 has.
  KF_MEMBER void share() {
    mean = __shfl_sync(0xffffffffu, mean, 0);
    spread = __shfl_sync(0xffffffffu, spread, 0);
    count = __shfl_sync(0xffffffffu, count, 0);
  }
  KF_MEMBER float sum() const { return mean * count; }
  // Thread 0 of the block ends with the moments of all its threads.
  template <int BLOCK> KF_MEMBER void meet() {
    __shared__ float each[3][BLOCK / 32];
    settle();
    meet_warp();
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      each[0][threadIdx.x / 32] = mean;
      each[1][threadIdx.x / 32] = spread;
      each[2][threadIdx.x / 32] = count;
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (int k = 1; k < BLOCK / 32; ++k) merge(each[0][k], each[1][k], each[2][k]);
  }
};

// One block has put its partial results of a row where others can see them.
KF_DEVICE void arrive(int* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
  }
}

// Wait until all ``parts`` blocks of a row have arrived; all of them must be on the device at once.
KF_DEVICE void await(const int* arrived, int parts) {
  if (threadIdx.x == 0) {
    int seen = 0;
    while (seen < parts) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
  }
  __syncthreads();
}

// Partial results of PARTS blocks, put together by every warp for itself and alike. They are read from
// L2: a line of L1 may be older than what other blocks have written meanwhile.
template <int PARTS> KF_DEVICE float meet_sums(const float* parts) {
  float total = 0;
  for (int k = threadIdx.x % 32; k < PARTS; k += 32) total += __ldcg(parts + k);
#pragma unroll
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return total;
}

template <int PARTS> KF_DEVICE Moments meet_moments(const float* means, const float* spreads, const float* counts) {
  Moments all;
  for (int k = threadIdx.x % 32; k < PARTS; k += 32) all.merge(__ldcg(means + k), __ldcg(spreads + k), __ldcg(counts + k));
  all.meet_warp();
  all.share();
  return all;
}

// Blocks of a cluster (sm_90 and later) work on one row and read each other's shared memory.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define KF_CLUSTER(n) __cluster_dims__(n, 1, 1)
KF_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// What ``mine`` holds in the block of this rank.
KF_DEVICE float cluster_read(const float* mine, int rank) {
  const unsigned own = unsigned(__cvta_generic_to_shared(mine));
  unsigned other;
  float value;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(other));
  return value;
}
#else
#define KF_CLUSTER(n)
KF_DEVICE void cluster_sync() { __trap(); }
KF_DEVICE float cluster_read(const float* mine, int rank) { __trap(); return *mine; }
#endif

template <int PARTS> KF_DEVICE float cluster_sum(const float* mine) {
  const int lane = threadIdx.x % 32;
  float total = lane < PARTS ? cluster_read(mine, lane) : 0.f;
#pragma unroll
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return total;
}

// ``mine`` holds mean, spread and count of this block.
template <int PARTS> KF_DEVICE Moments cluster_moments(const float* mine) {
  Moments all;
  const int lane = threadIdx.x % 32;
  if (lane < PARTS) all.merge(cluster_read(mine, lane), cluster_read(mine + 1, lane), cluster_read(mine + 2, lane));
  all.meet_warp();
  all.share();
  return all;
}

// The rest of the vocabulary, in single and double precision.
#define KF_UNARY(name) \
  KF_DEVICE float name(float x) { return ::name##f(x); } \
  KF_DEVICE double name(double x) { return ::name(x); }
KF_UNARY(acos) KF_UNARY(acosh) KF_UNARY(asin) KF_UNARY(asinh) KF_UNARY(atan) KF_UNARY(atanh) KF_UNARY(ceil)
KF_UNARY(cos) KF_UNARY(cosh) KF_UNARY(erfc) KF_UNARY(exp2) KF_UNARY(log10) KF_UNARY(log2) KF_UNARY(sin)
KF_UNARY(sinh) KF_UNARY(tan) KF_UNARY(trunc)
#undef KF_UNARY
KF_DEVICE float round(float x) { return ::rintf(x); }
KF_DEVICE double round(double x) { return ::rint(x); }
KF_DEVICE float atan2(float y, float x) { return ::atan2f(y, x); }
KF_DEVICE double atan2(double y, double x) { return ::atan2(y, x); }
KF_DEVICE float hypot(float x, float y) { return ::hypotf(x, y); }
KF_DEVICE double hypot(double x, double y) { return ::hypot(x, y); }

template <class T> KF_DEVICE T nan() { return std::numeric_limits<T>::quiet_NaN(); }
template <class T> KF_DEVICE T infinity() { return std::numeric_limits<T>::infinity(); }
template <class T> KF_DEVICE T largest() { return std::numeric_limits<T>::max(); }
template <class T> KF_DEVICE T lowest() { return std::numeric_limits<T>::lowest(); }

}  // namespace kf
