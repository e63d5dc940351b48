// Products of matrices in parts whose sums stay in registers, for kernels on a CPU.
#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "model/products/cpu_vectors.h"

namespace sdtune::model::products {

// A number of Avx512Bfloat16: two of bfloat16 in the memory of one of float32, the first one in its low half.
SDTUNE_INLINE float pair_of(c10::BFloat16 first, c10::BFloat16 second) {
  return std::bit_cast<float>(std::uint32_t{first.x} | std::uint32_t{second.x} << 16);
}

// A matrix that is read number by number: element (row, depth) lies at data[row * row_step + depth * depth_step].
struct Left {
  const float* data;
  std::int64_t row_step, depth_step;
};
// One that is read in vectors: row i of its depth begins at data + i * step.
struct Right {
  const float* data;
  std::int64_t step;
};

// sums += left right over `depth`, for kRows rows and kVectors vectors of columns.
template <class Cpu, std::int64_t kRows, int kVectors>
SDTUNE_INLINE void multiply(const Left& left, const Right& right, std::int64_t depth,
                            typename Cpu::Vector (&sums)[kRows][kVectors]) {
  const float* a = left.data;
  const float* b = right.data;
  for (std::int64_t i = 0; i < depth; ++i, a += left.depth_step, b += right.step) {
    typename Cpu::Vector columns[kVectors];
    for (int j = 0; j < kVectors; ++j) load_vector(b + j * Cpu::kLanes, columns[j]);
#pragma GCC unroll 12
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (int j = 0; j < kVectors; ++j) add_product<Cpu>(a[r * left.row_step], columns[j], sums[r][j]);
    }
  }
}

// out = scales out + left right, of kRows rows and kVectors vectors of columns. `scales`: one a row; null: out begins
// at zero.
template <class Cpu, std::int64_t kRows, int kVectors>
SDTUNE_INLINE void update_tile(const Left& left, const Right& right, std::int64_t depth, const float* scales,
                               float* out, std::int64_t out_step) {
  typename Cpu::Vector sums[kRows][kVectors];
#pragma GCC unroll 12
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) {
      if (scales != nullptr) {
        load_vector(out + r * out_step + j * Cpu::kLanes, sums[r][j]);
        sums[r][j] *= scales[r];
      } else {
        sums[r][j] = typename Cpu::Vector{};
      }
    }
  }
  multiply<Cpu>(left, right, depth, sums);
#pragma GCC unroll 12
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) store_vector(out + r * out_step + j * Cpu::kLanes, sums[r][j]);
  }
}

// Calls tile(row, kRows as an integral_constant) until all rows are through, the last ones in smaller groups. Few rows
// have too few sums to hide the latency of a multiplication and addition: two groups of kMany stand for a whole one and
// kFew.
template <class Cpu, class Tile>
SDTUNE_INLINE void for_each_group(std::int64_t rows, const Tile& tile) {
  constexpr std::int64_t kMany = Cpu::kRows * 2 / 3, kFew = Cpu::kRows / 3;
  static_assert(2 * kMany == Cpu::kRows + kFew);
  std::int64_t row = 0;
  while (rows - row >= Cpu::kRows && rows - row != 2 * kMany) {
    tile(row, std::integral_constant<std::int64_t, Cpu::kRows>());
    row += Cpu::kRows;
  }
  for (; row + kMany <= rows; row += kMany) tile(row, std::integral_constant<std::int64_t, kMany>());
  for (; row + kFew <= rows; row += kFew) tile(row, std::integral_constant<std::int64_t, kFew>());
  for (; row < rows; ++row) tile(row, std::integral_constant<std::int64_t, 1>());
}

// out = scales out + left right of [rows, columns], rows in groups of Cpu::kRows and columns in pairs of vectors and a
// last one: `rows` is rounded up to Cpu::kRows, `columns` is a multiple of kLanes.
template <class Cpu>
SDTUNE_INLINE void update(const Left& left, const Right& right, std::int64_t rows, std::int64_t depth,
                          std::int64_t columns, const float* scales, float* out, std::int64_t out_step) {
  for (std::int64_t r = 0; r < rows; r += Cpu::kRows) {
    const Left group = {left.data + r * left.row_step, left.row_step, left.depth_step};
    const float* group_scales = scales == nullptr ? nullptr : scales + r;
    std::int64_t c = 0;
    for (; c + 2 * Cpu::kLanes <= columns; c += 2 * Cpu::kLanes) {
      update_tile<Cpu, Cpu::kRows, 2>(group, {right.data + c, right.step}, depth, group_scales, out + r * out_step + c,
                                      out_step);
    }
    if (c < columns) {
      update_tile<Cpu, Cpu::kRows, 1>(group, {right.data + c, right.step}, depth, group_scales, out + r * out_step + c,
                                      out_step);
    }
  }
}

}  // namespace sdtune::model::products
