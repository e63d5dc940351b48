// The tiles of attention on a CPU, and the exponential function of its softmax.
#pragma once

#include <cstdint>
#include <cstring>

#include "model/kernels/cpu_vectors.h"

namespace sdtune::model::attention {

// Keys that are worked on together: with kQueries queries (attention_work.h) their scores stay in the second cache.
// Both are multiples of the rows and columns of either kind.
constexpr int64_t kKeys = 120;
// Rows behind the last key that a tile may read and write.
constexpr int64_t kSpareRows = 12;

// e^x for x <= 0, as fast_exp; written for vectors, since a compiler that must keep to traps does not make them of it.
template <class Cpu>
SDTUNE_INLINE void exponentiate(typename Cpu::Vector& x) {
  using Vector = typename Cpu::Vector;
  using Bits = typename Cpu::Bits;
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f, kRound = 12582912.0f;
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

}  // namespace sdtune::model::attention
