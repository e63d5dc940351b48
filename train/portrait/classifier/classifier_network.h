// The classifier: a small residual CNN that reads a portrait's attributes, and who it is.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "model/nn/linear.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"
#include "model/nn/resnet_block.h"

namespace sdtune::train::classifier {

inline constexpr std::int64_t kClassifierSize = 64;  // px a side
inline constexpr std::int64_t kFeatures = 256;
inline constexpr std::int64_t kEmbeddingSize = 128;

struct ClassifierOutput {
  torch::Tensor logits;     // [B, column_count()], the heads side by side
  torch::Tensor numbers;    // [B, kNumberNames.size()], in the units of portrait::Identity
  torch::Tensor features;   // [B, kFeatures], what the three others are read from
  torch::Tensor embedding;  // [B, kEmbeddingSize] of length 1: near for one person, far for two, whatever they wear
};

// About 2.5 million float32 weights. The first layer sees 2 x 2 pixels as one place, so that the widest maps, where a
// CPU is slowest, are 32 x 32; three more halvings with a residual block each follow (He et al., "Identity mappings in
// deep residual networks", 2016, with group norms). The last map is flattened, not averaged: which cheek bears the mark
// matters.
class ClassifierNetworkImpl : public torch::nn::Module {
 public:
  ClassifierNetworkImpl();

  // images [B, 3, 64, 64] in [-1, 1]
  ClassifierOutput forward(const torch::Tensor& images);

 private:
  model::Conv2d conv_in_;
  model::GroupNorm norm_in_;
  model::ModuleList<model::Conv2d> downsamplers_;
  model::ModuleList<model::ResnetBlock2D> resnets_;
  model::GroupNorm norm_out_;
  model::Conv2d conv_out_;
  model::Linear feature_proj_;
  model::Linear class_head_;
  model::Linear number_head_;
  model::Linear embedding_head_;
};
TORCH_MODULE(ClassifierNetwork);

}  // namespace sdtune::train::classifier
