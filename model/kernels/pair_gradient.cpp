#include "model/kernels/pair_gradient.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "model/products/register_products.h"

namespace sdtune::model {
namespace {

using Pairs = Avx512Bfloat16;

constexpr int64_t kPair = 2;
// What is worked on together: the gradients of kChannels channels of the input, over kDepth channels of the output. A
// panel of the weight, of the columns whose sums stay in registers, stays in the first cache while all rows go by.
constexpr int64_t kChannels = 32, kDepth = 256, kPanel = 2 * Pairs::kLanes;

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// dy with zeros behind its last row, up to a multiple of the rows of registers.
torch::Tensor with_spare_rows(const torch::Tensor& dy) {
  const int64_t rows = round_up(dy.size(0), Pairs::kRows);
  if (rows == dy.size(0)) return dy;
  torch::Tensor padded = torch::zeros({rows, dy.size(1)}, dy.options());
  padded.narrow(0, 0, dy.size(0)).copy_(dy);
  return padded;
}

// The weight as a matrix with a row a channel that comes out, and the columns of a block.
struct WeightBlock {
  const c10::BFloat16* data;  // the first row's first column
  int64_t step, columns;
};

// `depth` rows -> panels [depth / 2, kPanel] of pairs of two rows, zeros behind the last column.
SDTUNE_INLINE void pack(const WeightBlock& block, int64_t depth, float* panels) {
  for (int64_t column = 0; column < block.columns; column += kPanel) {
    const int64_t count = std::min(kPanel, block.columns - column);
    const c10::BFloat16* row = block.data + column;
    for (int64_t i = 0; i < depth; i += kPair, row += kPair * block.step, panels += kPanel) {
      for (int64_t j = 0; j < count; ++j) panels[j] = products::pair_of(row[j], row[block.step + j]);
      std::fill(panels + count, panels + kPanel, 0.0f);
    }
  }
}

// Of one thread.
struct Scratch {
  Scratch(int64_t rows, int64_t taps)
      : width(round_up(kChannels * taps, kPanel)),
        panels(static_cast<std::size_t>(kDepth / kPair * width)),
        sums(static_cast<std::size_t>(rows * width)),
        ones(static_cast<std::size_t>(rows), 1.0f) {}

  int64_t width;  // of a row of `sums`
  std::vector<float> panels, sums, ones;
};

#if defined(__x86_64__)
// sums [rows, width] = dy times the block of the weight.
SDTUNE_AVX512_BF16 void multiply_block(const torch::Tensor& dy, const WeightBlock& whole, Scratch& scratch) {
  const int64_t rows = dy.size(0), out = dy.size(1);
  const auto* pairs = static_cast<const float*>(dy.const_data_ptr());
  for (int64_t first = 0; first < out; first += kDepth) {
    const int64_t depth = std::min(kDepth, out - first);
    pack({whole.data + first * whole.step, whole.step, whole.columns}, depth, scratch.panels.data());
    const float* panel = scratch.panels.data();
    for (int64_t column = 0; column < whole.columns; column += kPanel, panel += depth / kPair * kPanel) {
      products::update<Pairs>({pairs + first / kPair, out / kPair, 1}, {panel, kPanel}, rows, depth / kPair, kPanel,
                              first == 0 ? nullptr : scratch.ones.data(), scratch.sums.data() + column, scratch.width);
    }
  }
}
#endif

}  // namespace

bool can_multiply_gradient_by_pairs(const torch::Tensor& weight) {
  return can_multiply_bfloat16_pairs() && weight.size(0) % kPair == 0;
}

torch::Tensor input_gradient_by_pairs(const torch::Tensor& dy, const torch::Tensor& weight, const torch::Tensor& like,
                                      const PatchShape& shape) {
  torch::Tensor dx = torch::empty_like(like, torch::MemoryFormat::ChannelsLast);
#if defined(__x86_64__)
  const int64_t in = weight.size(1), taps = shape.kernel * shape.kernel;
  const torch::Tensor rows = with_spare_rows(dy);
  const auto* numbers = weight.const_data_ptr<c10::BFloat16>();
  at::parallel_for(0, (in + kChannels - 1) / kChannels, 1, [&](int64_t begin, int64_t end) {
    Scratch scratch(rows.size(0), taps);
    for (int64_t first = begin * kChannels; first < std::min(in, end * kChannels); first += kChannels) {
      const int64_t channels = std::min(kChannels, in - first);
      multiply_block(rows, {numbers + first * taps, in * taps, channels * taps}, scratch);
      scatter_channels({scratch.sums.data(), scratch.width, first, channels}, dx, shape);
    }
  });
#endif
  return dx;
}

}  // namespace sdtune::model
