// Included before every cpu kernel: the 16-bit floating types and mathematics that vectorises.
//
// The float functions are branch-free, so that a loop with `#pragma omp simd` around them becomes
// vector code without -ffast-math; they keep NaN and infinities. Errors are below 2 units in the last
// place (3 for those made of others): tests/proposers/test_prelude.py measures them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace kf {

static inline uint32_t bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return word;
}

static inline float number(uint32_t word) {
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

}  // namespace kf

// bfloat16: the upper half of a float, rounded to nearest even.
struct kf_bf16 {
  uint16_t bits;
  kf_bf16() = default;
  kf_bf16(float value) : bits(round(value)) {}
  // `out[i] = value` through this operator vectorises; through a temporary it does not (g++ 12).
  kf_bf16& operator=(float value) {
    bits = round(value);
    return *this;
  }
  static uint16_t round(float value) {
    const uint32_t word = kf::bits(value);
    const uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    return uint16_t(value != value ? 0x7fc0u : rounded);
  }
  operator float() const { return kf::number(uint32_t(bits) << 16); }
};

// IEEE half, converted in integer arithmetic: compilers vectorise that without AVX512-FP16.
struct kf_f16 {
  uint16_t bits;
  kf_f16() = default;
  kf_f16(float value) : bits(round(value)) {}
  kf_f16& operator=(float value) {
    bits = round(value);
    return *this;
  }
  static uint16_t round(float value) {
    const uint32_t word = kf::bits(value), size = word & 0x7fffffffu;
    const uint32_t normal = (size + 0xc8000fffu + ((size >> 13) & 1)) >> 13;
    const uint32_t tiny = kf::bits(kf::number(size) + 0.5f) - 0x3f000000u;
    uint32_t half = size < 0x38800000u ? tiny : normal;
    half = size >= 0x477ff000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? 0x7e00u : half;
    return uint16_t(half | ((word >> 16) & 0x8000u));
  }
  operator float() const {
    const uint32_t size = bits & 0x7fffu;
    uint32_t word = kf::bits(kf::number(size << 13) * 0x1p112f);
    word |= size >= 0x7c00u ? 0x7f800000u : 0u;
    return kf::number(word | (uint32_t(bits & 0x8000u) << 16));
  }
};

namespace kf {

static const float inf = std::numeric_limits<float>::infinity();

// exp: 2^n · p(r), |r| ≤ ln2/2 (Cephes expf); the power of two in two factors, so that results
// near overflow and in the denormal range are right.
static inline float exp(float x) {
  x = x < -104.f ? -104.f : x;
  x = x > 89.f ? 89.f : x;
  const float n = (x * 1.44269504088896341f + 12582912.f) - 12582912.f;
  float r = n * -0.693359375f + x;
  r = n * 2.12194440e-4f + r;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  const int32_t whole = int32_t(n), half = whole >> 1;
  return p * number(uint32_t(half + 127) << 23) * number(uint32_t(whole - half + 127) << 23);
}

// log: exponent plus a polynomial on [√½, √2) (Cephes logf).
static inline float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const uint32_t word = bits(tiny ? x * 8388608.f : x) - 0x3f3504f3u;
  const float e = float(int32_t(word) >> 23) - (tiny ? 23.f : 0.f);
  const float f = number((word & 0x007fffffu) + 0x3f3504f3u) - 1.f;
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = p * f * z - 2.12194440e-4f * e - 0.5f * z + f + 0.693359375f * e;
  y = x == inf ? inf : y;
  y = x == 0.f ? -inf : y;
  return x < 0.f || x != x ? std::numeric_limits<float>::quiet_NaN() : y;
}

// tanh: odd polynomial near 0 (Cephes tanhf), 1 − 2/(e^2|x| + 1) elsewhere. A rational function takes
// a third of the time, but its 5 units near ±1 are too much where 1 + tanh cancels (a GELU written out).
static inline float tanh(float x) {
  const float a = x < 0.f ? -x : x, z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  p = p * z * x + x;
  const float big = 1.f - 2.f / (exp(2.f * a) + 1.f);
  return a < 0.625f ? p : (x < 0.f ? -big : big);
}

static inline float sigmoid(float x) { return 1.f / (1.f + exp(-x)); }

// erf: njuffa's two-range polynomial (https://stackoverflow.com/a/35148199), below 1 ulp.
static inline float erf(float x) {
  const float t = x < 0.f ? -x : x, s = x * x;
  float r = -1.72853470e-5f * t + 3.83197126e-4f;
  const float u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  r = 1.f - exp(t > 10.f ? -100.f : r);
  const float far = x < 0.f ? -r : r;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  p = p * x + x;
  const float value = t > 0.927734375f ? far : p;
  return x != x ? x : value;
}

// log1p and expm1 by Kahan's corrections of log(1+x) and exp(x)−1.
static inline float log1p(float x) {
  const float u = 1.f + x;
  const float y = log(u) * (x / (u - 1.f));
  return u == 1.f ? x : (x > 1e30f ? log(u) : y);
}

static inline float expm1(float x) {
  const float u = exp(x), y = (u - 1.f) * (x / log(u));
  return u == 1.f ? x : (u == inf ? inf : (u - 1.f == -1.f ? -1.f : y));
}

template <class T> static inline T nan() { return std::numeric_limits<T>::quiet_NaN(); }
template <class T> static inline T infinity() { return std::numeric_limits<T>::infinity(); }
template <class T> static inline T largest() { return std::numeric_limits<T>::max(); }
template <class T> static inline T lowest() { return std::numeric_limits<T>::lowest(); }

// The rest of the vocabulary is the standard library's.
using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atan2;
using std::atanh;
using std::ceil;
using std::copysign;
using std::cos;
using std::cosh;
using std::erfc;
using std::exp2;
using std::floor;
using std::hypot;
using std::log10;
using std::log2;
using std::sin;
using std::sinh;
using std::tan;
using std::trunc;
template <class T> static inline T round(T x) { return std::nearbyint(x); }

static inline double exp(double x) { return std::exp(x); }
static inline double log(double x) { return std::log(x); }
static inline double tanh(double x) { return std::tanh(x); }
static inline double sigmoid(double x) { return 1. / (1. + std::exp(-x)); }
static inline double erf(double x) { return std::erf(x); }
static inline double log1p(double x) { return std::log1p(x); }
static inline double expm1(double x) { return std::expm1(x); }

template <class T> static inline T sqrt(T x) { return std::sqrt(x); }
template <class T> static inline T rsqrt(T x) { return T(1) / std::sqrt(x); }

// NaN-propagating, as torch.maximum and torch.minimum.
template <class T> static inline T max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> static inline T min(T a, T b) { return a < b || a != a ? a : b; }
template <class T> static inline T abs(T x) { return x < T(0) ? -x : x; }
static inline float abs(float x) { return std::fabs(x); }
static inline double abs(double x) { return std::fabs(x); }
template <class T> static inline T sign(T x) { return T((T(0) < x) - (x < T(0))); }

// Python's modulo and floor division (c10::div_floor_floating for floats).
template <class T> static inline T remainder(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    const T r = b == T(-1) ? T(0) : T(a % b);
    return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
  } else {
    const T r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

template <class T> static inline T floordiv(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    if (b == T(-1)) return T(0 - a);
    const T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
  } else {
    if (b == 0) return a / b;
    const T mod = std::fmod(a, b);
    T q = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) q -= 1;
    if (q == 0) return std::copysign(T(0), a / b);
    const T low = std::floor(q);
    return q - low > T(0.5) ? low + 1 : low;
  }
}

template <class T> static inline T fmod(T a, T b) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    return b == T(-1) ? T(0) : T(a % b);
  } else {
    return std::fmod(a, b);
  }
}

// Integer powers by squaring; torch gives 0 for negative exponents unless the base is ±1.
template <class T> static inline T pow(T base, T exponent) {
  if constexpr (std::numeric_limits<T>::is_integer) {
    if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? T(exponent % 2 ? -1 : 1) : T(0);
    T result = 1;
    for (; exponent; exponent /= 2, base = T(base * base))
      if (exponent % 2) result = T(result * base);
    return result;
  } else {
    return std::pow(base, exponent);
  }
}

}  // namespace kf
