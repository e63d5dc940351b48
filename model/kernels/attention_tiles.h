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

// The fit for r, of vectors: a compiler that must keep to traps does not make them of a loop over numbers.
template <int kTerms, class Vector>
SDTUNE_INLINE void fitted(const float (&fit)[kTerms], const Vector& r, Vector& p) {
  p = r * fit[kTerms - 1] + fit[kTerms - 2];
#pragma GCC unroll 8
  for (int i = kTerms - 3; i >= 0; --i) p = r * p + fit[i];
}

// p 2^whole, by AVX-512's instruction: what float32 cannot hold becomes 0.
template <class Vector>
SDTUNE_INLINE void scale_by_power(const Vector& p, const Vector& whole, Vector& to) {
#if defined(__x86_64__)  // not intrinsics, as in cpu_vectors.h
  asm("vscalefps %2, %1, %0" : "=v"(to) : "v"(p), "v"(whole));
#endif
}
template <class Vector>
SDTUNE_INLINE void round_to_whole(const Vector& x, Vector& whole) {
#if defined(__x86_64__)
  asm("vrndscaleps $0, %1, %0" : "=v"(whole) : "v"(x));
#endif
}
// a b - c with the product not rounded: the compiler does not contract a product that it needs elsewhere too.
template <class Vector>
SDTUNE_INLINE void multiply_subtract(const Vector& a, const Vector& b, const Vector& c, Vector& to) {
#if defined(__x86_64__)
  to = a;
  asm("vfmsub213ps %2, %1, %0" : "+v"(to) : "v"(b), "v"(c));
#endif
}

// 2^x to a relative error of 3e-6, by AVX-512's instructions.
template <class Vector>
SDTUNE_INLINE void short_power_of_two(Vector& x) {
  Vector whole, p;
  round_to_whole(x, whole);
  fitted(kShortPower, x - whole, p);
  scale_by_power(p, whole, x);
}

// e^x for x <= 0; below -87 the result is about 1e-38. Not a number stays one.
template <class Cpu>
SDTUNE_INLINE void exponentiate(typename Cpu::Vector& x) {
  using Vector = typename Cpu::Vector;
  constexpr float kLog2EBelow = 1.92596299e-8f;  // what kLog2E lacks
  x = x < -87.0f ? Vector{} - 87.0f : x;
  Vector whole, p;
  if constexpr (Cpu::kHasPowers) {
    Vector r;
    round_to_whole(x * kLog2E, whole);
    multiply_subtract(x, Vector{} + kLog2E, whole, r);
    fitted(kPower, r + x * kLog2EBelow, p);
    scale_by_power(p, whole, x);
  } else {
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
    typename Cpu::Bits exponent;
    Vector power;
    const Vector shifted = x * kLog2E + kRound;
    whole = shifted - kRound;
    fitted(kPower, (x * kLog2E - whole) + x * kLog2EBelow, p);
    std::memcpy(&exponent, &shifted, sizeof(exponent));
    exponent = (exponent + 127) << 23;
    std::memcpy(&power, &exponent, sizeof(power));
    x = p * power;
  }
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
