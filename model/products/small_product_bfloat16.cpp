#include <algorithm>
#include <memory>

#include "model/products/register_products.h"
#include "model/products/small_product_parts.h"
#include "model/products/transposes.h"

namespace sdtune::model::products {
namespace {

using Pairs = Avx512Bfloat16;
using Bfloat16Matrix = Matrix<c10::BFloat16>;

constexpr int64_t kPairColumns = 2 * Pairs::kLanes;

struct alignas(64) CacheLine {
  float numbers[Pairs::kLanes];
};

// Pairs of neighbouring numbers, in the memory of a float32 each.
const float* as_pairs(const c10::BFloat16* numbers) {
  return reinterpret_cast<const float*>(numbers);
}

// Two rows of numbers side by side -> a row of pairs; an odd last row is paired with zeros.
SDTUNE_INLINE void interleave_rows(const Bfloat16Matrix& matrix, int64_t row, bool has_second, int64_t count,
                                   float* pairs) {
  const c10::BFloat16* one = matrix.data + row * matrix.row_step;
  const c10::BFloat16* next = one + matrix.row_step;
  for (int64_t j = 0; j < count; ++j) pairs[j] = pair_of(one[j], has_second ? next[j] : c10::BFloat16());
}

// b's rows -> [pairs of rows, kPairColumns], zeros behind the last column.
SDTUNE_INLINE void pack_pairs(const Bfloat16Matrix& b, int64_t depth, int64_t count, float* panel) {
  const int64_t pairs = (depth + 1) / 2;
  if (b.column_step == 1) {
    for (int64_t i = 0; i < pairs; ++i, panel += kPairColumns) {
      interleave_rows(b, 2 * i, 2 * i + 1 < depth, count, panel);
      std::fill(panel + count, panel + kPairColumns, 0.0f);
    }
    return;
  }
  const float* columns = as_pairs(b.data);
  const int64_t step = b.column_step / 2, whole_pairs = pairs / 4 * 4, whole_count = count / 4 * 4;
  for (int64_t i = 0; i < whole_pairs; i += 4) {
    for (int64_t j = 0; j < whole_count; j += 4) {
      transpose_4x4(columns + j * step + i, step, panel + i * kPairColumns + j, kPairColumns);
    }
  }
  for (int64_t i = 0; i < pairs; ++i) {
    for (int64_t j = i < whole_pairs ? whole_count : 0; j < kPairColumns; ++j) {
      panel[i * kPairColumns + j] = j < count ? columns[j * step + i] : 0.0f;
    }
  }
}

// Rows of a as pairs: where its numbers do not lie side by side, as a copy [pairs, rows] in `memory`.
SDTUNE_INLINE Left pairs_of_rows(const Bfloat16Matrix& a, int64_t rows, int64_t depth,
                                 std::unique_ptr<float[]>& memory) {
  const bool has_pairs = a.column_step == 1 && depth % 2 == 0;  // a single row lies both ways
  if (has_pairs) return {as_pairs(a.data), a.row_step / 2, 1};
  const int64_t pairs = (depth + 1) / 2;
  memory = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(pairs * rows));
  const Bfloat16Matrix columns = {a.data, a.column_step, 1};
  for (int64_t i = 0; i < pairs; ++i) {
    interleave_rows(columns, 2 * i, 2 * i + 1 < depth, rows, memory.get() + i * rows);
  }
  return {memory.get(), 1, rows};
}

struct PairsOut {
  c10::BFloat16* data;
  int64_t step, count;
  const c10::BFloat16* bias;
};

template <int kVectors>
SDTUNE_INLINE void multiply_pairs(const Left& a, const float* panel, int64_t pairs, int64_t rows, const PairsOut& out) {
  for_each_group<Pairs>(rows, [&](int64_t row, auto group) SDTUNE_LAMBDA {
    constexpr int64_t kRows = decltype(group)::value;
    alignas(64) float sums[kRows * kPairColumns];
    update_tile<Pairs, kRows, kVectors>({a.data + row * a.row_step, a.row_step, a.depth_step}, {panel, kPairColumns},
                                        pairs, nullptr, sums, kPairColumns);
    for (int64_t r = 0; r < kRows; ++r) {
      c10::BFloat16* to = out.data + (row + r) * out.step;
      const float* from = sums + r * kPairColumns;
      if (out.bias == nullptr) {
        for (int64_t j = 0; j < out.count; ++j) store(to + j, from[j]);
      } else {
        for (int64_t j = 0; j < out.count; ++j) store(to + j, from[j] + load(out.bias + j));
      }
    }
  });
}

#if defined(__x86_64__)
SDTUNE_AVX512_BF16 void part_by_pairs(const SmallProduct<c10::BFloat16>& product, const Part& part) {
  const int64_t rows = part.end_row - part.first_row, pairs = (product.depth + 1) / 2;
  std::unique_ptr<float[]> memory;
  const Left a = pairs_of_rows(product.a.at(part.first_row, 0), rows, product.depth, memory);
  const auto lines = std::make_unique_for_overwrite<CacheLine[]>(static_cast<std::size_t>(2 * pairs));
  float* const panel = lines[0].numbers;
  for (int64_t column = part.first_column; column < part.end_column; column += kPairColumns) {
    const int64_t count = std::min(kPairColumns, part.end_column - column);
    pack_pairs(product.b.at(0, column), product.depth, count, panel);
    const PairsOut out = {product.out + part.first_row * product.columns + column, product.columns, count,
                          product.bias == nullptr ? nullptr : product.bias + column};
    if (count > Pairs::kLanes) {
      multiply_pairs<2>(a, panel, pairs, rows, out);
    } else {
      multiply_pairs<1>(a, panel, pairs, rows, out);
    }
  }
}
#endif

}  // namespace

void multiply_bfloat16_part([[maybe_unused]] const SmallProduct<c10::BFloat16>& product,
                            [[maybe_unused]] const Part& part) {
#if defined(__x86_64__)
  part_by_pairs(product, part);
#endif
}

}  // namespace sdtune::model::products
