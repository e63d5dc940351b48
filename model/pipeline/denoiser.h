// The UNet over the steps of one sampling loop.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "model/core/chunk_threads.h"
#include "model/kernels/packed_weights.h"
#include "model/unet/unet.h"

namespace sdtune::model {

// Keeps what stays the same from step to step: the keys and values of the text, and on a CPU the weights of
// convolutions in oneDNN's order (kernels/packed_weights.h). So the UNet must not change while one lives. On a CPU each
// thread gets rows of its own where there are enough: a small network spends as long on handing work out and in as on
// its products, and the two rows of a guided image need nothing of each other.
class Denoiser {
 public:
  // context [B, M, cross_attention_dim] and `added` as in UNet2DConditionModel::forward, on the UNet's device.
  Denoiser(UNet2DConditionModel unet, const torch::Tensor& context, const AddedConditions& added);

  // sample [B, in_channels, H, W], timestep [1] or a scalar on the UNet's device -> the prediction, [B, out_channels,
  // H, W]. Without gradients.
  torch::Tensor operator()(const torch::Tensor& sample, const torch::Tensor& timestep);

 private:
  // Rows that go through the UNet together.
  struct Chunk {
    ChunkRange rows;
    torch::Tensor context;
    AddedConditions added;
    ContextCache cache;
  };
  torch::Tensor denoise(Chunk& chunk, const torch::Tensor& sample, const torch::Tensor& timestep);

  UNet2DConditionModel unet_;
  std::unique_ptr<PackedWeights> packed_ = std::make_unique<PackedWeights>();
  std::vector<Chunk> chunks_;
};

}  // namespace sdtune::model
