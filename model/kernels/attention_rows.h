// Rows of a head from and to matrices that products of registers read: float32, whole vectors, columns.
#pragma once

#include <algorithm>
#include <cstring>

#include "model/kernels/attention_tiles.h"
#include "model/kernels/attention_work.h"
#include "model/products/register_products.h"
#include "model/products/transposes.h"

namespace sdtune::model::attention {

// Numbers of a packed row, for either kind of vectors: zeros lie behind the head's.
constexpr int64_t kWidestVector = Avx512::kLanes;
inline int64_t packed_width(const Sizes& sizes) {
  return (sizes.head + kWidestVector - 1) / kWidestVector * kWidestVector;
}
template <class Cpu>
SDTUNE_INLINE int64_t used_width(const Sizes& sizes) {
  return (sizes.head + Cpu::kLanes - 1) / Cpu::kLanes * Cpu::kLanes;
}

template <class T>
SDTUNE_INLINE void read_rows_of(const T* from, int64_t step, int64_t count, const Sizes& sizes, float factor,
                                float* to) {
  const int64_t width = packed_width(sizes);
  for (int64_t r = 0; r < count; ++r, from += step, to += width) {
    for (int64_t i = 0; i < sizes.head; ++i) to[i] = load(from + i) * factor;
    for (int64_t i = sizes.head; i < width; ++i) to[i] = 0.0f;
  }
}

// Rows first .. first + count, times `factor`, -> [count, packed_width].
SDTUNE_INLINE void read_rows(const Rows& rows, int64_t first, int64_t count, const Sizes& sizes, float factor,
                             float* to) {
  if (rows.is_bfloat16) {
    read_rows_of(static_cast<const c10::BFloat16*>(rows.data) + first * rows.step, rows.step, count, sizes, factor, to);
  } else {
    read_rows_of(static_cast<const float*>(rows.data) + first * rows.step, rows.step, count, sizes, factor, to);
  }
}

// Two vectors of numbers rounded to bfloat16, in the memory of one: the first one's, then the second one's.
template <class Vector>
SDTUNE_INLINE void join(const Vector& first, const Vector& second, Vector& both) {
#if defined(__x86_64__)
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(first), "v"(second));
#endif
}

// The same, each number of the first one beside that of the second one.
template <class Vector>
SDTUNE_INLINE void pair_up(const Vector& first, const Vector& second, Vector& pairs) {
  using Halves = std::int16_t __attribute__((vector_size(64)));
  Vector both;
  join(first, second, both);
  Halves halves;
  std::memcpy(&halves, &both, sizeof(halves));
  halves = __builtin_shufflevector(halves, halves, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25,
                                   10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::memcpy(&pairs, &halves, sizeof(pairs));
}

SDTUNE_INLINE const c10::BFloat16* row_of(const Rows& rows, int64_t row) {
  return static_cast<const c10::BFloat16*>(rows.data) + row * rows.step;
}

// Rows of keys, a pair two numbers of a row -> [count, packed_width], of which the first half is used.
SDTUNE_INLINE void read_pairs_of_columns(const Rows& rows, int64_t first, int64_t count, const Sizes& sizes,
                                         float* to) {
  for (int64_t r = 0; r < count; ++r, to += packed_width(sizes)) {
    std::memcpy(to, row_of(rows, first + r), static_cast<std::size_t>(sizes.head) * sizeof(c10::BFloat16));
  }
}

// Rows of values, a pair the same number of two rows -> [(count + 1) / 2, packed_width], zeros behind the last row.
SDTUNE_INLINE void read_pairs_of_rows(const Rows& rows, int64_t first, int64_t count, const Sizes& sizes, float* to) {
  const int64_t width = packed_width(sizes);
  for (int64_t r = 0; r < count; r += 2, to += width) {
    const c10::BFloat16* one = row_of(rows, first + r);
    const c10::BFloat16* next = r + 1 < count ? row_of(rows, first + r + 1) : nullptr;
    for (int64_t i = 0; i < sizes.head; ++i)
      to[i] = products::pair_of(one[i], next == nullptr ? c10::BFloat16() : next[i]);
    std::fill(to + sizes.head, to + width, 0.0f);
  }
}

// Rows of queries -> columns of pairs [head / 2, kQueries], zeros behind the last row.
SDTUNE_INLINE void read_columns_of_pairs(const Rows& rows, int64_t first, int64_t count, const Sizes& sizes,
                                         float* to) {
  for (int64_t r = 0; r < kQueries; ++r) {
    const c10::BFloat16* row = r < count ? row_of(rows, first + r) : nullptr;
    for (int64_t i = 0; i < sizes.head; i += 2) {
      to[i / 2 * kQueries + r] = row == nullptr ? 0.0f : products::pair_of(row[i], row[i + 1]);
    }
  }
}

template <class T>
SDTUNE_INLINE void write_row_of(T* to, const float* from, const Sizes& sizes, float factor) {
  for (int64_t i = 0; i < sizes.head; ++i) store(to + i, from[i] * factor);
}

SDTUNE_INLINE void write_row(const Rows& rows, int64_t row, const float* from, const Sizes& sizes, float factor) {
  if (rows.is_bfloat16) {
    write_row_of(static_cast<c10::BFloat16*>(rows.data) + row * rows.step, from, sizes, factor);
  } else {
    write_row_of(static_cast<float*>(rows.data) + row * rows.step, from, sizes, factor);
  }
}

// [count, packed_width] -> columns [head, kQueries], zeros behind the last row. The rows are read up to a multiple
// of 4.
SDTUNE_INLINE void transpose(const float* rows, int64_t count, const Sizes& sizes, float* columns) {
  const int64_t width = packed_width(sizes);
  for (int64_t r = 0; r < count; r += 4) {
    for (int64_t i = 0; i < sizes.head; i += 4) {
      transpose_4x4(rows + r * width + i, width, columns + i * kQueries + r, kQueries);
    }
  }
  if (count == kQueries) return;
  for (int64_t i = 0; i < sizes.head; ++i)
    std::fill(columns + i * kQueries + count, columns + (i + 1) * kQueries, 0.0f);
}

}  // namespace sdtune::model::attention
