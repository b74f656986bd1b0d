// Included before every cpu kernel: standard headers and the two 16-bit floating types.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

struct kf_bf16 {
  uint16_t bits;
  kf_bf16() = default;
  kf_bf16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    // Round to nearest even; a NaN keeps its payload's top bit so that it stays one.
    bits = value != value ? uint16_t((word >> 16) | 0x40) : uint16_t((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
  operator float() const {
    uint32_t word = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};

typedef _Float16 kf_f16;
