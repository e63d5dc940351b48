// Products of small matrices that stay in registers, for attention on a CPU.
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

// A matrix that is read number by number: element (row, depth) lies at data[row * row_step + depth * depth_step].
struct Left {
  const float* data;
  int64_t row_step, depth_step;
};
// One that is read in vectors: row i of its depth begins at data + i * step.
struct Right {
  const float* data;
  int64_t step;
};

// sums += left right over `depth`, for kRows rows and kVectors vectors of columns.
template <class Cpu, int kVectors>
SDTUNE_INLINE void multiply(const Left& left, const Right& right, int64_t depth,
                            typename Cpu::Vector (&sums)[Cpu::kRows][kVectors]) {
  const float* a = left.data;
  const float* b = right.data;
  for (int64_t i = 0; i < depth; ++i, a += left.depth_step, b += right.step) {
    typename Cpu::Vector columns[kVectors];
    for (int j = 0; j < kVectors; ++j) load_vector(b + j * Cpu::kLanes, columns[j]);
#pragma GCC unroll 12
    for (int64_t r = 0; r < Cpu::kRows; ++r) {
      for (int j = 0; j < kVectors; ++j) add_product<Cpu>(a[r * left.row_step], columns[j], sums[r][j]);
    }
  }
}

// out [rows, columns] = scales out + left right, rows in groups of kRows and columns in pairs of vectors and a last
// one: `rows` is rounded up to kRows, `columns` is a multiple of kLanes. `scales`: one a row; null: out begins at zero.
template <class Cpu, int kVectors>
SDTUNE_INLINE void update_tile(const Left& left, const Right& right, int64_t depth, const float* scales, float* out,
                               int64_t out_step) {
  typename Cpu::Vector sums[Cpu::kRows][kVectors];
#pragma GCC unroll 12
  for (int64_t r = 0; r < Cpu::kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) {
      if (scales != nullptr) {
        load_vector(out + r * out_step + j * Cpu::kLanes, sums[r][j]);
        sums[r][j] *= scales[r];
      } else {
        sums[r][j] = typename Cpu::Vector{};
      }
    }
  }
  multiply<Cpu, kVectors>(left, right, depth, sums);
#pragma GCC unroll 12
  for (int64_t r = 0; r < Cpu::kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) store_vector(out + r * out_step + j * Cpu::kLanes, sums[r][j]);
  }
}

template <class Cpu>
SDTUNE_INLINE void update(const Left& left, const Right& right, int64_t rows, int64_t depth, int64_t columns,
                          const float* scales, float* out, int64_t out_step) {
  for (int64_t r = 0; r < rows; r += Cpu::kRows) {
    const Left group = {left.data + r * left.row_step, left.row_step, left.depth_step};
    const float* group_scales = scales == nullptr ? nullptr : scales + r;
    int64_t c = 0;
    for (; c + 2 * Cpu::kLanes <= columns; c += 2 * Cpu::kLanes) {
      update_tile<Cpu, 2>(group, {right.data + c, right.step}, depth, group_scales, out + r * out_step + c, out_step);
    }
    if (c < columns) {
      update_tile<Cpu, 1>(group, {right.data + c, right.step}, depth, group_scales, out + r * out_step + c, out_step);
    }
  }
}

}  // namespace sdtune::model::attention
