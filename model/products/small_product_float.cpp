#include <algorithm>

#include "model/products/register_products.h"
#include "model/products/small_product_parts.h"

namespace sdtune::model::products {
namespace {

// Rows of b that are multiplied at once: a panel of them, of the columns whose sums stay in registers, stays in the
// first cache while all rows of a go by. Sums of so many are added to each other, which rounds less than one sum.
constexpr int64_t kPanelDepth = 64;

// Of b's columns fewer than a panel has at its end, for which zeros stand.
struct FloatPanel {
  float* data;
  int64_t depth, count;
};

// Columns that lie one behind the other, number by number.
template <int64_t kWidth>
SDTUNE_INLINE void pack_float_columns(const Matrix<float>& b, const FloatPanel& panel) {
  const int64_t whole_depth = panel.depth / 4 * 4, whole_count = panel.count / 4 * 4;
  const auto copy_one = [&](int64_t i, int64_t j) SDTUNE_LAMBDA {
    panel.data[i * kWidth + j] = j < panel.count ? b.data[i + j * b.column_step] : 0.0f;
  };
  for (int64_t j = 0; j < whole_count; j += 4) {
    for (int64_t i = 0; i < whole_depth; i += 4) {
      transpose_square(b.data + i + j * b.column_step, b.column_step, panel.data + i * kWidth + j, kWidth);
    }
    for (int64_t i = whole_depth; i < panel.depth; ++i) {
      for (int64_t k = j; k < j + 4; ++k) copy_one(i, k);
    }
  }
  for (int64_t i = 0; i < panel.depth; ++i) {
    for (int64_t j = whole_count; j < kWidth; ++j) copy_one(i, j);
  }
}

template <int64_t kWidth>
SDTUNE_INLINE void pack_floats(const Matrix<float>& b, const FloatPanel& panel) {
  if (b.column_step != 1) return pack_float_columns<kWidth>(b, panel);
  for (int64_t i = 0; i < panel.depth; ++i) {
    float* row = panel.data + i * kWidth;
    std::copy_n(b.data + i * b.row_step, panel.count, row);
    std::fill(row + panel.count, row + kWidth, 0.0f);
  }
}

struct FloatsOut {
  float* data;
  int64_t step;
  bool adds;
};

template <class Cpu, int kVectors>
SDTUNE_INLINE void multiply_floats(const Left& a, const FloatPanel& panel, int64_t rows, const FloatsOut& out) {
  constexpr int64_t kPanel = 2 * Cpu::kLanes, kWidth = kVectors * Cpu::kLanes;
  for_each_group<Cpu>(rows, [&](int64_t row, auto group) SDTUNE_LAMBDA {
    constexpr int64_t kRows = decltype(group)::value;
    float sums[kRows * kWidth];
    const Left left = {a.data + row * a.row_step, a.row_step, a.depth_step};
    const Right right = {panel.data, kPanel};
    float* to = out.data + row * out.step;
    if (panel.count == kWidth && !out.adds) {
      update_tile<Cpu, kRows, kVectors>(left, right, panel.depth, nullptr, to, out.step);
      return;
    }
    update_tile<Cpu, kRows, kVectors>(left, right, panel.depth, nullptr, sums, kWidth);
    for (int64_t r = 0; r < kRows; ++r) {  // what lies beside the last column must not be written
      float* to_row = to + r * out.step;
      for (int64_t j = 0; j < panel.count; ++j) to_row[j] = (out.adds ? to_row[j] : 0.0f) + sums[r * kWidth + j];
    }
  });
}

template <class Cpu>
SDTUNE_INLINE void multiply_part(const SmallProduct<float>& product, const Part& part) {
  constexpr int64_t kPanel = 2 * Cpu::kLanes;
  alignas(64) float numbers[kPanelDepth * kPanel];
  const int64_t rows = part.end_row - part.first_row;
  for (int64_t column = part.first_column; column < part.end_column; column += kPanel) {
    FloatPanel panel = {numbers, 0, std::min(kPanel, part.end_column - column)};
    FloatsOut out = {product.out + part.first_row * product.columns + column, product.columns, product.bias != nullptr};
    for (int64_t r = 0; out.adds && r < rows; ++r) {
      std::copy_n(product.bias + column, panel.count, out.data + r * out.step);
    }
    for (int64_t first = 0; first < product.depth; first += kPanelDepth) {
      panel.depth = std::min(kPanelDepth, product.depth - first);
      pack_floats<kPanel>(product.b.at(first, column), panel);
      const Matrix<float> a = product.a.at(part.first_row, first);
      const Left left = {a.data, a.row_step, a.column_step};
      if (panel.count > Cpu::kLanes) {
        multiply_floats<Cpu, 2>(left, panel, rows, out);
      } else {
        multiply_floats<Cpu, 1>(left, panel, rows, out);
      }
      out.adds = true;
    }
  }
}

#if defined(__x86_64__)
SDTUNE_AVX2 void part_avx2(const SmallProduct<float>& product, const Part& part) {
  multiply_part<Avx2>(product, part);
}
SDTUNE_AVX512 void part_avx512(const SmallProduct<float>& product, const Part& part) {
  multiply_part<Avx512>(product, part);
}
SDTUNE_AVX2 void part_avx512_by_avx2(const SmallProduct<float>& product, const Part& part) {
  multiply_part<Avx512>(product, part);
}
#endif

}  // namespace

MultiplyPart<float> multiply_part_by([[maybe_unused]] Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512ByAvx2) return part_avx512_by_avx2;
  return vectors == Vectors::kAvx2 ? part_avx2 : part_avx512;
#else
  return nullptr;  // vectors_of_this_cpu() is unset here
#endif
}

}  // namespace sdtune::model::products
