// Stands for CUDA's header on the CPU (cuda_runtime.h).
#pragma once

#include <cmath>
#include <cstdint>

struct __half {
  std::uint16_t bits;
};

inline float __half2float(__half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31u, fraction = value.bits & 1023u;
  if (exponent == 31) return __builtin_bit_cast(float, sign | 0x7F800000u | fraction << 13);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024u), static_cast<int>(exponent) - 25);
  return sign != 0 ? -magnitude : magnitude;
}

// To nearest, ties to even, also below the least normal number; infinity from 65520 on.
inline __half __float2half_rn(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {0x7FFFu};
  if (magnitude >= 0x477FF000u) return {static_cast<std::uint16_t>(sign | 0x7C00u)};
  if (magnitude < 0x38800000u) {  // below 2^-14: a whole number of 2^-24
    const float steps = std::nearbyint(std::ldexp(__builtin_bit_cast(float, magnitude), 24));
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(steps))};
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
}
