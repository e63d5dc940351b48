// Stands for CUDA's header on the CPU (cuda_runtime.h).
#pragma once

#include <cstdint>

struct __nv_bfloat16 {
  std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  return __builtin_bit_cast(float, std::uint32_t{value.bits} << 16);
}

// To nearest, ties to even; every NaN becomes 0x7FFF, as on the device.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FFFu};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}
