// Weights of convolutions as what computes with them wants them, kept for as long as they do not change.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "model/kernels/conv2d.h"

namespace sdtune::model {

// LibTorch brings the whole weight into oneDNN's blocks at every call. Where a map has few pixels that takes longer
// than the convolution: 2560 -> 1280 channels of 16 x 16 px take 190 ms in bfloat16 on one core of an EPYC of family
// 25, model 17, and 68 ms with the weight packed before, with the same bits. Over the steps of a sampling loop the
// weights stay as they are.
//
// Whoever holds one promises that no weight that it saw changes until it is gone. Needs the memory of those weights a
// second time, for Winograd's (winograd_conv2d.h) four times that of float32. Threads may share one.
class PackedWeights {
 public:
  // weight [out, in, k, k] in blocks for maps of x's size, packed when it is first seen with that size: the blocks, and
  // so the rounding, depend on it.
  torch::Tensor of_convolution(const torch::Tensor& weight, const torch::Tensor& x, const ConvShape& shape);
  // Whether it keeps a weight [out, in, 3, 3] transformed: large ones take too much memory, and transforming them is a
  // quarter of their convolution. SD 1.5's at 512 px come to 1.0 GB. One of bfloat16 would take eight times
  // its memory, for maps so large that transforming it is next to nothing.
  static bool keeps_winograd(const torch::Tensor& weight);
  // weight [out, in, 3, 3] as winograd_weight makes it, whatever the map's size.
  torch::Tensor of_winograd(const torch::Tensor& weight);
  // How many it keeps, a weight once for each way.
  std::size_t count();

 private:
  struct Packed {
    torch::Tensor weight;  // held, so that its address is no other's
    torch::Tensor blocks;
  };

  std::mutex mutex_;
  std::map<std::pair<const void*, std::vector<std::int64_t>>, Packed>
      packed_;  // by address and x's size, none for Winograd's
};

// While one lives, conv2d on this thread takes weights from `packed`, which must outlive it; null: packs none, for
// convolutions with temporary copies of weights.
class PackedWeightsScope {
 public:
  explicit PackedWeightsScope(PackedWeights* packed);
  ~PackedWeightsScope();
  PackedWeightsScope(const PackedWeightsScope&) = delete;
  PackedWeightsScope& operator=(const PackedWeightsScope&) = delete;

 private:
  PackedWeights* outer_;
};

// Of the innermost scope of this thread; null: none.
PackedWeights* packed_weights();

// Whether this convolution can be computed with a packed weight: channels_last float32 or bfloat16 on a CPU, without
// gradients.
bool can_convolve_packed(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

// As torch::conv2d, to the bit.
torch::Tensor packed_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                            const ConvShape& shape, PackedWeights& packed);

}  // namespace sdtune::model
