// A small product's parts (small_product.h) for each dtype, and how threads share them.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <cstdint>

#include "model/products/cpu_vectors.h"

namespace sdtune::model::products {

// Element (row, column) lies at data[row * row_step + column * column_step]; one step is 1.
template <class T>
struct Matrix {
  const T* data;
  int64_t row_step, column_step;

  Matrix at(int64_t row, int64_t column) const {
    return {data + row * row_step + column * column_step, row_step, column_step};
  }
};

// out [rows, columns] = a [rows, depth] b [depth, columns] + bias (null: none), in float32 also added to what out has.
template <class T>
struct SmallProduct {
  int64_t rows, depth, columns;
  Matrix<T> a, b;
  const T* bias;
  T* out;
  bool adds = false;  // without a bias
};

// What one thread computes: all columns of some rows, or some columns of all rows.
struct Part {
  int64_t first_row, end_row, first_column, end_column;
};

template <class T>
using MultiplyPart = void (*)(const SmallProduct<T>& product, const Part& part);

MultiplyPart<float> multiply_part_by(Vectors vectors);
// By AVX-512's products of pairs, where can_multiply_bfloat16_pairs(). Numbers that lie side by side in a row of a or
// in a column of b are read in pairs: there `depth` and the other step are even, and `data` is aligned to 4 bytes.
void multiply_bfloat16_part(const SmallProduct<c10::BFloat16>& product, const Part& part);

// out [rows, 16] = a [rows, depth] times 16 columns of `depth` rows, at most 64, and what out has where it adds.
struct PanelProduct {
  int64_t rows, depth;
  Matrix<float> a;
  const float* panel;
  int64_t panel_step;
  float* out;
  int64_t out_step;
  bool adds;
};
using MultiplyPanel = void (*)(const PanelProduct& product);
inline constexpr int64_t kPanelColumns = 2 * Avx2::kLanes;
// Its bits are those of multiply_part_by(), the same for all vectors, where its calls begin at multiples of 64 of the
// depth.
MultiplyPanel multiply_panel_by(Vectors vectors);

inline constexpr int64_t kOfThread = int64_t{1} << 18;  // multiplications that a second thread is worth

// Threads share the rows, or the columns where those are more.
template <class T>
void multiply_in_parts(const SmallProduct<T>& product, MultiplyPart<T> multiply_part) {
  constexpr int64_t kShare = 32;  // whole groups of rows, and of vectors of columns
  const bool shares_rows = product.rows >= product.columns;
  const int64_t length = shares_rows ? product.rows : product.columns;
  const int64_t of_share =
      std::max<int64_t>(kShare * product.depth * (shares_rows ? product.columns : product.rows), 1);
  at::parallel_for(
      0, (length + kShare - 1) / kShare, std::max<int64_t>(kOfThread / of_share, 1), [&](int64_t begin, int64_t end) {
        const int64_t first = begin * kShare, last = std::min(end * kShare, length);
        multiply_part(product,
                      shares_rows ? Part{first, last, 0, product.columns} : Part{0, product.rows, first, last});
      });
}

}  // namespace sdtune::model::products
