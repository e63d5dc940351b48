// diffusers' Transformer2DModel: a feature map as a sequence of pixels through transformer blocks that see the text.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>

#include "model/nn/attention.h"
#include "model/nn/linear.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"

namespace sdtune::model {

struct TransformerOptions {
  int64_t channels = 0;
  int64_t heads = 1;
  int64_t depth = 1;  // transformer blocks
  int64_t context_dim = 0;
  int64_t norm_num_groups = 32;
  bool use_linear_projection = false;
  bool only_cross_attention = false;
  bool upcast_attention = false;
};

// Shazeer, "GLU variants improve transformer" (2020), GEGLU with the exact (erf) GELU. Names: net.0.proj, net.2.
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);  // [B, L, C] -> same

 private:
  Linear proj_ = nullptr, out_ = nullptr;
};
TORCH_MODULE(FeedForward);

// Self-attention, attention to the text, feed-forward, each after a layer norm and with a residual.
class BasicTransformerBlockImpl : public torch::nn::Module {
 public:
  explicit BasicTransformerBlockImpl(const TransformerOptions& options);
  // x [B, L, C], context [B, M, context_dim] -> [B, L, C]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& context, ContextCache* cache = nullptr);

 private:
  bool only_cross_attention_;
  LayerNorm norm1_;
  Attention attn1_ = nullptr;
  LayerNorm norm2_;
  Attention attn2_ = nullptr;
  LayerNorm norm3_;
  FeedForward ff_;
};
TORCH_MODULE(BasicTransformerBlock);

class Transformer2DImpl : public torch::nn::Module {
 public:
  explicit Transformer2DImpl(const TransformerOptions& options);
  // x [B, C, H, W], context [B, M, context_dim] -> [B, C, H, W]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& context, ContextCache* cache = nullptr);
  void set_gradient_checkpointing(bool on) { recompute_ = on; }

 private:
  bool recompute_ = false;
  GroupNorm norm_;
  Linear linear_in_ = nullptr, linear_out_ = nullptr;
  Conv2d conv_in_ = nullptr, conv_out_ = nullptr;
  std::unique_ptr<ModuleList<BasicTransformerBlock>> transformer_blocks_;
};
TORCH_MODULE(Transformer2D);

}  // namespace sdtune::model
