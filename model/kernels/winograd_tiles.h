// The transforms of Winograd's minimal filtering F(4 x 4, 3 x 3), a tile of a feature map at a time. Lavin and Gray,
// "Fast algorithms for convolutional neural networks" (CVPR 2016): 4 x 4 pixels that come out of a 3 x 3 convolution
// take 36 products of each pair of channels instead of 144.
//
// In one dimension with the matrices A [6, 4], B [6, 6] and G [6, 3], y = A^T ((G g) * (B^T d)) of a kernel g [3] and
// of pixels d [6]; in two by rows and columns. The points of the polynomials behind them are 0, 11/16, -11/16, 3/2,
// -3/2 and infinity instead of the usual 0, 1, -1, 2, -2: the mean error of a sum over 320 channels is 1.1e-6 of the
// result instead of 2.5e-6, of a convolution without them 2.4e-7 (after Barabasz et al., "Error analysis and improving
// the accuracy of Winograd convolution for deep neural networks", 2020).
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "model/products/cpu_vectors.h"

namespace sdtune::model::winograd {

constexpr std::int64_t kTile = 4;           // pixels a side of what a tile gives
constexpr std::int64_t kSeen = 6;           // pixels a side of what it reads
constexpr std::int64_t kPositions = 36;     // numbers of a transformed tile or kernel
constexpr std::int64_t kTaps = 9;           // of a kernel, row by row
constexpr std::int64_t kChannelGroup = 16;  // channels are a multiple of it

// A transformed tile or kernel: position p of channel c lies at data[p * step + c].
struct Positions {
  float* data;
  std::int64_t step;
};
struct ConstPositions {
  const float* data;
  std::int64_t step;
};

// A weight's kernels of 9 numbers that are transformed into a panel of columns (products/small_product_parts.h): that
// of column j at depth d begins at data[d * depth_step + j * column_step]. depth is a multiple of 8; depth_step is 9,
// or where kernels are flipped column_step.
template <class Number>
struct PanelKernels {
  const Number* data;
  std::int64_t depth, depth_step, column_step;
};

// The transforms for a kind of CPU. Their results have the same bits on every kind.
struct Transforms {
  // B^T d B of 6 x 6 pixels, row by row, each of `channels` numbers.
  void (*input)(const float* const* pixels, std::int64_t channels, Positions out);
  void (*input_bfloat16)(const c10::BFloat16* const* pixels, std::int64_t channels, Positions out);
  // A^T m A + bias (null: none) into 4 x 4 pixels.
  void (*output)(ConstPositions sums, const float* bias, std::int64_t channels, float* const* pixels);
  void (*output_bfloat16)(ConstPositions sums, const float* bias, std::int64_t channels, c10::BFloat16* const* pixels);
  // A dy A^T: what the gradient of 4 x 4 pixels is to the sums.
  void (*output_gradient)(const float* const* pixels, std::int64_t channels, Positions out);
  // G g G^T of the kernels [channels, 9] of one channel; `flipped`: of the kernels turned by 180 degrees.
  void (*kernel)(const float* kernels, std::int64_t channels, bool flipped, Positions out);
  // The same of kChannelGroup columns, where position p's number of column j at depth d is
  // out.data[p * step + d * kChannelGroup + j].
  void (*kernel_panel)(const PanelKernels<float>& kernels, bool flipped, Positions out);
  void (*kernel_panel_bfloat16)(const PanelKernels<c10::BFloat16>& kernels, bool flipped, Positions out);
  // G^T u G: the gradient of the kernels [channels, 9].
  void (*kernel_gradient)(ConstPositions sums, std::int64_t channels, float* kernels);
};
const Transforms& transforms(Vectors vectors);

}  // namespace sdtune::model::winograd
