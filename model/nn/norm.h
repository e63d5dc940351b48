// Group and layer normalisation. Statistics are float32 or better whatever the dtype of the weights.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/activation.h"

namespace sdtune::model {

// Wu and He, "Group normalization" (ECCV 2018). Keeps the input's memory format.
class GroupNormImpl : public torch::nn::Module {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels, double eps);

  torch::Tensor forward(const torch::Tensor& x);  // [B, C, H, W] -> same
  // activation(norm(x + offset)); offset [B, C] may be undefined. With SiLU that is one fused pass.
  torch::Tensor forward_activated(const torch::Tensor& x, Activation activation,
                                  const torch::Tensor& offset = torch::Tensor());
  // The same for an x that is read nowhere else, which may be written over (group_norm_over).
  torch::Tensor forward_activated_over(torch::Tensor x, Activation activation,
                                       const torch::Tensor& offset = torch::Tensor());

  torch::Tensor weight;
  torch::Tensor bias;

 private:
  int64_t num_groups_;
  double eps_;
};
TORCH_MODULE(GroupNorm);

// Ba et al., "Layer normalization" (2016), over the last axis.
class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(int64_t size, double eps);

  torch::Tensor forward(const torch::Tensor& x);  // [..., size] -> same

  torch::Tensor weight;
  torch::Tensor bias;

 private:
  double eps_;
};
TORCH_MODULE(LayerNorm);

}  // namespace sdtune::model
