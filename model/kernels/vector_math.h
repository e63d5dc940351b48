// Elementary functions that the compiler can vectorise: no branches, no calls, correct to a few units in the last
// place.
#pragma once

#include <bit>
#include <cstdint>

namespace sdtune::model {

// A function compiled once for each kind of CPU; the loader picks. Code that such a function calls must be inlined into
// it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SDTUNE_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SDTUNE_CPU_CLONES
#endif
#define SDTUNE_INLINE inline __attribute__((always_inline))

// e^x. Not a number stays not a number; below -87 the result is about 1e-38, above 88 about 1.6e38.
SDTUNE_INLINE float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * kLog2E + kRound;
  const float whole = shifted - kRound;
  const float r = (x - whole * kLn2High) - whole * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor's polynomial of degree 7: error below 6e-9 there.
  const float p =
      1.0f +
      r * (1.0f +
           r * (0.5f + r * (1.66666667e-1f +
                            r * (4.16666667e-2f + r * (8.33333333e-3f + r * (1.38888889e-3f + r * 1.98412698e-4f))))));
  const auto exponent = static_cast<std::uint32_t>(std::bit_cast<std::int32_t>(shifted) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

SDTUNE_INLINE float fast_sigmoid(float x) {
  return 1.0f / (1.0f + fast_exp(-x));
}

}  // namespace sdtune::model
