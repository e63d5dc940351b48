// The tiles of attention on a CPU, and the exponential function of its softmax.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "model/kernels/attention_work.h"
#include "model/products/cpu_vectors.h"

namespace sdtune::model::attention {

// Keys that are worked on together: with kQueries queries (attention_work.h) their scores stay in the second cache.
// Both are multiples of the rows and columns of either kind.
constexpr int64_t kKeys = 120;
// Below each score, and few enough powers of ten that it can be scaled: e to the power of its distance to one is next
// to nothing.
constexpr float kLeastScore = -1e30f;
// Rows behind the last key that a tile may read and write.
constexpr int64_t kSpareRows = 12;

// What pairs of bfloat16 are multiplied with is rounded to bfloat16: a short exponential will do. Its scores are in
// units of ln 2.
struct Avx512ShortExponential : Avx512Bfloat16 {};
template <class Cpu>
constexpr bool kIsShort = std::is_same_v<Cpu, Avx512ShortExponential>;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

// Our minimax fits of 2^r on [-1/2, 1/2], c[i] of r^i: relative errors 3e-6, where rounding to bfloat16 has 2e-3, and
// 3e-9.
constexpr float kShortPower[] = {1.0f, 6.93124175e-1f, 2.40240991e-1f, 5.59064262e-2f, 9.58285294e-3f};
constexpr float kPower[] = {1.0f,           6.93147215e-1f, 2.40226528e-1f, 5.55031055e-2f,
                            9.61769297e-3f, 1.34066439e-3f, 1.55946782e-4f};

// 2^x, by AVX-512's instructions. What float32 cannot hold becomes 0, and not a number stays one.
template <int kTerms, class Vector>
SDTUNE_INLINE void power_of_two(const float (&fit)[kTerms], Vector& x) {
#if defined(__x86_64__)  // not intrinsics, as in cpu_vectors.h
  Vector whole, result;
  asm("vrndscaleps $0, %1, %0" : "=v"(whole), "+v"(x));  // x too: what it was made of is not asked for again
  const Vector r = x - whole;
  Vector p = r * fit[kTerms - 1] + fit[kTerms - 2];
#pragma GCC unroll 8
  for (int i = kTerms - 3; i >= 0; --i) p = r * p + fit[i];
  asm("vscalefps %2, %1, %0" : "=v"(result) : "v"(p), "v"(whole));
  x = result;
#endif
}

// e^x for x <= 0. Without AVX-512 as fast_exp; written for vectors, since a compiler that must keep to traps does not
// make them of it.
template <class Cpu>
SDTUNE_INLINE void exponentiate(typename Cpu::Vector& x) {
  if constexpr (Cpu::kHasPowers) {
    x *= kLog2E;
    return power_of_two(kPower, x);
  }
  using Vector = typename Cpu::Vector;
  using Bits = typename Cpu::Bits;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f, kRound = 12582912.0f;
  x = x < -87.0f ? Vector{} - 87.0f : x;  // not a number stays one
  const Vector shifted = x * kLog2E + kRound;
  const Vector whole = shifted - kRound;
  const Vector r = (x - whole * kLn2High) - whole * kLn2Low;
  Vector p = r * 1.98412698e-4f + 1.38888889e-3f;
  p = r * p + 8.33333333e-3f;
  p = r * p + 4.16666667e-2f;
  p = r * p + 1.66666667e-1f;
  p = r * p + 0.5f;
  p = r * p + 1.0f;
  p = r * p + 1.0f;
  Bits exponent;
  std::memcpy(&exponent, &shifted, sizeof(Bits));
  exponent = (exponent + 127) << 23;
  Vector power;
  std::memcpy(&power, &exponent, sizeof(Vector));
  x = p * power;
}

// Of a tile whose rows are keys from `key` on and whose columns are queries from `query` on: what a key has for the
// queries before it, which do not see it, becomes `value`.
SDTUNE_INLINE void hide_later_keys(float* tile, std::int64_t keys, std::int64_t key, std::int64_t query, float value) {
  for (std::int64_t r = 0; r < keys; ++r) {
    const std::int64_t hidden = std::clamp<std::int64_t>(key + r - query, 0, kQueries);
    std::fill_n(tile + r * kQueries, hidden, value);
  }
}

}  // namespace sdtune::model::attention
