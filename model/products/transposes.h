// Squares of numbers in memory whose rows and columns are exchanged, for kernels that read by rows what lies by
// columns.
#pragma once

#include <cstdint>

#include "model/products/cpu_vectors.h"

namespace sdtune::model {

// A square of 4 x 4 numbers, whose rows lie `step` numbers apart, with rows and columns exchanged.
SDTUNE_INLINE void transpose_4x4(const float* from, std::int64_t step, float* to, std::int64_t to_step) {
  using Four = float __attribute__((vector_size(16)));
  Four a, b, c, d;
  load_vector(from, a);
  load_vector(from + step, b);
  load_vector(from + 2 * step, c);
  load_vector(from + 3 * step, d);
  const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store_vector(to, Four(__builtin_shufflevector(ab0, cd0, 0, 1, 4, 5)));
  store_vector(to + to_step, Four(__builtin_shufflevector(ab0, cd0, 2, 3, 6, 7)));
  store_vector(to + 2 * to_step, Four(__builtin_shufflevector(ab1, cd1, 0, 1, 4, 5)));
  store_vector(to + 3 * to_step, Four(__builtin_shufflevector(ab1, cd1, 2, 3, 6, 7)));
}

using EightFloats = Avx2::Vector;

// One of 8 x 8 numbers, of float32 or bfloat16, into registers: columns[j] has column j.
template <class Number>
SDTUNE_INLINE void transpose_8x8(const Number* from, std::int64_t step, EightFloats (&columns)[8]) {
  EightFloats rows[8], pairs[8];  // pairs: of two rows, of each half two columns
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) load_numbers<Avx2>(from + i * step, rows[i]);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  EightFloats fours[8];  // of four rows, of each half one column
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int of = i / 2 * 4 + i % 2;
    fours[2 * i] = __builtin_shufflevector(pairs[of], pairs[of + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    fours[2 * i + 1] = __builtin_shufflevector(pairs[of], pairs[of + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    columns[j] = __builtin_shufflevector(fours[j], fours[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    columns[j + 4] = __builtin_shufflevector(fours[j], fours[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace sdtune::model
