// The middle of encoder and decoder: resnet, one-head attention over all pixels, resnet.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>

#include "model/nn/attention.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"
#include "model/nn/resnet_block.h"
#include "model/vae/vae_config.h"

namespace sdtune::model {

// Self-attention of a feature map with its own group norm and residual.
class SpatialAttentionImpl : public AttentionImpl {
 public:
  SpatialAttentionImpl(int64_t channels, int64_t norm_num_groups, double eps);
  torch::Tensor forward(const torch::Tensor& x);  // [B, C, H, W] -> same

 private:
  GroupNorm group_norm_;
};
TORCH_MODULE(SpatialAttention);

// diffusers' UNetMidBlock2D with one layer.
class VaeMidBlockImpl : public torch::nn::Module {
 public:
  explicit VaeMidBlockImpl(const VaeConfig& config);
  torch::Tensor forward(torch::Tensor x);  // [B, C, H, W] -> same

 private:
  std::unique_ptr<ModuleList<SpatialAttention>> attentions_;
  std::unique_ptr<ModuleList<ResnetBlock2D>> resnets_;
};
TORCH_MODULE(VaeMidBlock);

// The epsilon of every norm in an AutoencoderKL.
inline constexpr double kVaeNormEps = 1e-6;

}  // namespace sdtune::model
