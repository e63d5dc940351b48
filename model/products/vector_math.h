// Elementary functions that the compiler can vectorise: no branches, no calls, correct to a few units in the last
// place.
#pragma once

#include <c10/util/BFloat16.h>

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
// The same of a lambda, behind its parameters.
#define SDTUNE_LAMBDA __attribute__((always_inline))

// One value of a map, in float32 whatever its type.
SDTUNE_INLINE float load(const float* p) {
  return *p;
}
SDTUNE_INLINE float load(const c10::BFloat16* p) {
  return std::bit_cast<float>(std::uint32_t{p->x} << 16);
}
SDTUNE_INLINE void store(float* p, float value) {
  *p = value;
}
SDTUNE_INLINE void store(c10::BFloat16* p, float value) {  // to nearest, ties to even; not a number stays one
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  p->x = static_cast<std::uint16_t>(value != value ? 0x7fc0u : rounded);
}

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

// The normal distribution at x: cumulative (Phi) and density.
struct NormalValue {
  float cumulative;
  float density;
};

// Phi(-|x|) = e^(-x^2 / 2) t P(t) with t = 1 / (1 + 0.3 |x| / sqrt(2)); P of degree 8 is our minimax fit of half the
// scaled complementary error function over t: relative error 2e-8 before rounding, 1.3e-6 after it in the far tail.
SDTUNE_INLINE NormalValue fast_normal(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float t = 1.0f / (1.0f + 0.212132034f * magnitude);
  float p = -0.0647615692f;
  p = p * t + 0.242782207f;
  p = p * t - 0.256140368f;
  p = p * t + 0.273861634f;
  p = p * t - 0.0473265672f;
  p = p * t + 0.107463585f;
  p = p * t + 0.0741694301f;
  p = p * t + 0.0853576373f;
  p = p * t + 0.0845940011f;
  const float bell = fast_exp(-0.5f * x * x);
  const float tail = bell * t * p;
  return {x < 0.0f ? tail : 1.0f - tail, bell * 0.398942280f};
}

SDTUNE_INLINE float fast_sigmoid(float x) {
  return 1.0f / (1.0f + fast_exp(-x));
}

}  // namespace sdtune::model
