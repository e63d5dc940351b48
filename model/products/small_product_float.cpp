#include <algorithm>
#include <memory>

#include "model/products/register_products.h"
#include "model/products/small_product_parts.h"
#include "model/products/transposes.h"

namespace sdtune::model::products {
namespace {

// Rows of b that are multiplied at once: a panel of them, of the columns whose sums stay in registers, stays in the
// first cache while all rows of a go by. Sums of so many are added to each other, which rounds less than one sum.
constexpr int64_t kPanelDepth = 64;
// And of a's rows and depth a block of 240 KiB, which stays in the second cache while all columns go by.
constexpr int64_t kBlockRows = 480, kBlockDepth = 2 * kPanelDepth;
// Where a's rows lie number by number so far apart, each step of the depth is a line of the cache of its own, and where
// so many columns go by, a copy of the block is worth it: 1024 x 1280 by 1280 x 1280 with AVX2 in 28 ms, without in 45.
constexpr int64_t kFarApart = 256, kManyColumns = 256;

// Of b's columns fewer than a panel has at its end, for which zeros stand.
struct FloatPanel {
  const float* data;
  int64_t step;  // from a row to the next
  int64_t depth, count;
  Matrix<float> next;  // the panel that comes after this one, in b; null data: none
};

// Lines of memory that the next panel lies in. They are asked for while this one is multiplied, a few with each group
// of rows: the CPU does not foresee them, since each is of another row or column, and waits where many are asked for at
// once. 32 x 192 by 192 x 1728, from memory, takes 0.6 of the time on one core of an EPYC of family 25, model 1 (AVX2).
class NextLines {
 public:
  // `first`: the next panel's first number; its data is null where there is none.
  NextLines(const Matrix<float>& first, int64_t depth, int64_t width, int64_t parts)
      : first_(first),
        is_by_rows_(first.column_step == 1),
        in_a_row_((is_by_rows_ ? width : depth) / kLine),
        lines_(first.data == nullptr ? 0 : (is_by_rows_ ? depth : width) * in_a_row_),
        of_part_((lines_ + parts - 1) / parts) {}

  SDTUNE_INLINE void prefetch_part() {
    for (const int64_t end = std::min(lines_, next_ + of_part_); next_ < end; ++next_) {
      __builtin_prefetch(is_by_rows_ ? first_.at(row_, offset_).data : first_.at(offset_, row_).data);
      offset_ += kLine;
      if (offset_ < in_a_row_ * kLine) continue;
      offset_ = 0;
      ++row_;
    }
  }

 private:
  static constexpr int64_t kLine = 16;  // numbers
  Matrix<float> first_;
  bool is_by_rows_;
  int64_t in_a_row_, lines_, of_part_;
  int64_t next_ = 0, row_ = 0, offset_ = 0;  // a row, or a column where those are dense, and a number in it
};

// Where such a panel is made.
struct PackedPanel {
  float* data;
  int64_t depth, count;
};

// Columns that lie one behind the other, number by number.
template <int64_t kWidth>
SDTUNE_INLINE void pack_float_columns(const Matrix<float>& b, const PackedPanel& panel) {
  const int64_t whole_depth = panel.depth / 4 * 4, whole_count = panel.count / 4 * 4;
  const auto copy_one = [&](int64_t i, int64_t j) SDTUNE_LAMBDA {
    panel.data[i * kWidth + j] = j < panel.count ? b.data[i + j * b.column_step] : 0.0f;
  };
  for (int64_t j = 0; j < whole_count; j += 4) {
    for (int64_t i = 0; i < whole_depth; i += 4) {
      transpose_4x4(b.data + i + j * b.column_step, b.column_step, panel.data + i * kWidth + j, kWidth);
    }
    for (int64_t i = whole_depth; i < panel.depth; ++i) {
      for (int64_t k = j; k < j + 4; ++k) copy_one(i, k);
    }
  }
  for (int64_t i = 0; i < panel.depth; ++i) {
    for (int64_t j = whole_count; j < kWidth; ++j) copy_one(i, j);
  }
}

// Whole vectors of a whole panel: of copies of a length that only the call knows GCC makes "rep movs", whose start took
// a quarter of the product's time with AVX2.
template <class Cpu>
SDTUNE_INLINE void pack_floats(const Matrix<float>& b, const PackedPanel& panel) {
  constexpr int64_t kWidth = 2 * Cpu::kLanes;
  if (b.column_step != 1) return pack_float_columns<kWidth>(b, panel);
  for (int64_t i = 0; i < panel.depth; ++i) {
    const float* from = b.data + i * b.row_step;
    float* row = panel.data + i * kWidth;
    if (panel.count == kWidth) {
      typename Cpu::Vector first, second;
      load_vector(from, first);
      load_vector(from + Cpu::kLanes, second);
      store_vector(row, first);
      store_vector(row + Cpu::kLanes, second);
    } else {
      for (int64_t j = 0; j < kWidth; ++j) row[j] = j < panel.count ? from[j] : 0.0f;
    }
  }
}

struct FloatsOut {
  float* data;
  int64_t step;
  bool adds;
};

template <class Cpu, int64_t kRows, int kVectors>
SDTUNE_INLINE void store_sums(const typename Cpu::Vector (&sums)[kRows][kVectors], float* to, int64_t step, bool adds) {
#pragma GCC unroll 12
  for (int64_t r = 0; r < kRows; ++r) {
    for (int j = 0; j < kVectors; ++j) {
      typename Cpu::Vector before = {};
      if (adds) load_vector(to + r * step + j * Cpu::kLanes, before);
      store_vector(to + r * step + j * Cpu::kLanes, adds ? before + sums[r][j] : sums[r][j]);
    }
  }
}

template <class Cpu, int kVectors>
SDTUNE_INLINE void multiply_floats(const Left& a, const FloatPanel& panel, int64_t rows, const FloatsOut& out) {
  constexpr int64_t kPanel = 2 * Cpu::kLanes, kWidth = kVectors * Cpu::kLanes;
  NextLines next(panel.next, panel.depth, kPanel, (rows + Cpu::kRows - 1) / Cpu::kRows);
  for_each_group<Cpu>(rows, [&](int64_t row, auto group) SDTUNE_LAMBDA {
    constexpr int64_t kRows = decltype(group)::value;
    typename Cpu::Vector sums[kRows][kVectors] = {};
    next.prefetch_part();
    multiply<Cpu>({a.data + row * a.row_step, a.row_step, a.depth_step}, {panel.data, panel.step}, panel.depth, sums);
    float* to = out.data + row * out.step;
    if (panel.count == kWidth) return store_sums<Cpu>(sums, to, out.step, out.adds);
    float numbers[kRows * kWidth];
    store_sums<Cpu>(sums, numbers, kWidth, false);
    for (int64_t r = 0; r < kRows; ++r) {  // what lies beside the last column must not be written
      float* to_row = to + r * out.step;
      for (int64_t j = 0; j < panel.count; ++j) to_row[j] = (out.adds ? to_row[j] : 0.0f) + numbers[r * kWidth + j];
    }
  });
}

// A block of a: some rows, and of their depth what lies between `first` and `end`.
struct Block {
  Matrix<float> a;  // its first number
  int64_t first_row, rows, first, end;
};

// The block copied to `memory`, with the numbers of a row side by side.
SDTUNE_INLINE Matrix<float> by_rows(const Block& block, float* memory) {
  const int64_t depth = block.end - block.first, whole_depth = depth / 4 * 4, whole_rows = block.rows / 4 * 4;
  for (int64_t r = 0; r < whole_rows; r += 4) {
    for (int64_t i = 0; i < whole_depth; i += 4) {
      transpose_4x4(block.a.at(r, i).data, block.a.column_step, memory + r * kBlockDepth + i, kBlockDepth);
    }
  }
  for (int64_t r = 0; r < block.rows; ++r) {
    for (int64_t i = r < whole_rows ? whole_depth : 0; i < depth; ++i) {
      memory[r * kBlockDepth + i] = *block.a.at(r, i).data;
    }
  }
  return {memory, kBlockDepth, 1};
}

// Of up to a panel of columns from `column` on, for which b's numbers are packed. `next`: where b's numbers of the next
// such call begin.
template <class Cpu>
SDTUNE_INLINE void multiply_columns(const SmallProduct<float>& product, const Block& block, int64_t column,
                                    int64_t count, const Matrix<float>& next) {
  constexpr int64_t kPanel = 2 * Cpu::kLanes;
  alignas(64) float numbers[kPanelDepth * kPanel];
  FloatPanel panel = {numbers, kPanel, 0, count, {}};
  FloatsOut out = {product.out + block.first_row * product.columns + column, product.columns,
                   block.first > 0 || product.adds || product.bias != nullptr};
  for (int64_t r = 0; block.first == 0 && product.bias != nullptr && r < block.rows; ++r) {
    std::copy_n(product.bias + column, count, out.data + r * out.step);
  }
  for (int64_t first = block.first; first < block.end; first += kPanelDepth) {
    panel.depth = std::min(kPanelDepth, block.end - first);
    pack_floats<Cpu>(product.b.at(first, column), {numbers, panel.depth, count});
    panel.next = next.data == nullptr ? next : next.at(first - block.first, 0);
    const Matrix<float> a = block.a.at(0, first - block.first);
    const Left left = {a.data, a.row_step, a.column_step};
    if (count > Cpu::kLanes) {
      multiply_floats<Cpu, 2>(left, panel, block.rows, out);
    } else {
      multiply_floats<Cpu, 1>(left, panel, block.rows, out);
    }
    out.adds = true;
  }
}

template <class Cpu>
SDTUNE_INLINE void multiply_part(const SmallProduct<float>& product, const Part& part) {
  constexpr int64_t kPanel = 2 * Cpu::kLanes;
  std::unique_ptr<float[]> memory;
  if (product.a.column_step >= kFarApart && part.end_column - part.first_column >= kManyColumns) {
    const int64_t rows = std::min(kBlockRows, part.end_row - part.first_row);
    memory = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(rows * kBlockDepth));
  }
  for (int64_t row = part.first_row; row < part.end_row; row += kBlockRows) {
    for (int64_t depth = 0; depth < product.depth; depth += kBlockDepth) {
      Block block = {product.a.at(row, depth), row, std::min(kBlockRows, part.end_row - row), depth,
                     std::min(product.depth, depth + kBlockDepth)};
      if (memory) block.a = by_rows(block, memory.get());
      for (int64_t column = part.first_column; column < part.end_column; column += kPanel) {
        Matrix<float> next = product.b.at(depth, column + kPanel);
        if (column + kPanel >= part.end_column) {
          next = block.end < product.depth ? product.b.at(block.end, part.first_column) : Matrix<float>{};
        }
        multiply_columns<Cpu>(product, block, column, std::min(kPanel, part.end_column - column), next);
      }
    }
  }
}

template <class Cpu>
SDTUNE_INLINE void multiply_panel(const PanelProduct& product) {
  const Left left = {product.a.data, product.a.row_step, product.a.column_step};
  multiply_floats<Cpu, kPanelColumns / Cpu::kLanes>(
      left, {product.panel, product.panel_step, product.depth, kPanelColumns, {}}, product.rows,
      {product.out, product.out_step, product.adds});
}

#if defined(__x86_64__)
SDTUNE_AVX2 void panel_avx2(const PanelProduct& product) {
  multiply_panel<Avx2>(product);
}
SDTUNE_AVX512 void panel_avx512(const PanelProduct& product) {
  multiply_panel<Avx512>(product);
}
SDTUNE_AVX2 void panel_avx512_by_avx2(const PanelProduct& product) {
  multiply_panel<Avx512>(product);
}
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

MultiplyPanel multiply_panel_by([[maybe_unused]] Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx512ByAvx2) return panel_avx512_by_avx2;
  return vectors == Vectors::kAvx2 ? panel_avx2 : panel_avx512;
#else
  return nullptr;
#endif
}

}  // namespace sdtune::model::products
