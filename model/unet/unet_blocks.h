// The levels of the UNet: (CrossAttn)DownBlock2D, UNetMidBlock2D(CrossAttn), (CrossAttn)UpBlock2D.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "model/nn/module_list.h"
#include "model/nn/resample.h"
#include "model/nn/resnet_block.h"
#include "model/unet/transformer_2d.h"
#include "model/unet/unet_config.h"

namespace sdtune::model {

// What every block of the network is conditioned on.
struct BlockConditions {
  torch::Tensor time;             // [B, time_channels], after the activation that every resnet begins with
  torch::Tensor context;          // [B, M, cross_attention_dim]
  ContextCache* cache = nullptr;  // of that context, or none
};

// Resnets, each with a transformer behind it or all without.
class UNetBlockImpl : public torch::nn::Module {
 public:
  void set_gradient_checkpointing(bool on);

 protected:
  UNetBlockImpl();

  void push_back(ResnetBlock2D resnet) { resnets_->push_back(std::move(resnet)); }
  void push_back(Transformer2D attention) { attentions_->push_back(std::move(attention)); }
  std::int64_t num_layers() const { return resnets_->size(); }
  // Resnet `layer`, [B, C, H, W] -> [B, C', H, W].
  torch::Tensor run_resnet(std::int64_t layer, const torch::Tensor& x, const BlockConditions& conditions);
  // The transformer behind it, where there is one.
  torch::Tensor run_attention(std::int64_t layer, const torch::Tensor& x, const BlockConditions& conditions);

 private:
  bool recompute_ = false;
  std::unique_ptr<ModuleList<Transformer2D>> attentions_;
  std::unique_ptr<ModuleList<ResnetBlock2D>> resnets_;
};

class DownBlock2DImpl : public UNetBlockImpl {
 public:
  DownBlock2DImpl(const UNetConfig& config, int64_t level);
  // x [B, C, H, W]; appends each output to `skips` and returns the last.
  torch::Tensor forward(torch::Tensor x, const BlockConditions& conditions, std::vector<torch::Tensor>& skips);

 private:
  std::unique_ptr<ModuleList<Downsample2D>> downsamplers_;
};
TORCH_MODULE(DownBlock2D);

class MidBlock2DImpl : public UNetBlockImpl {
 public:
  explicit MidBlock2DImpl(const UNetConfig& config);
  torch::Tensor forward(torch::Tensor x, const BlockConditions& conditions);  // [B, C, H, W] -> same
};
TORCH_MODULE(MidBlock2D);

class UpBlock2DImpl : public UNetBlockImpl {
 public:
  // `position` counts up blocks from the smallest map.
  UpBlock2DImpl(const UNetConfig& config, int64_t position);
  // x [B, C, H, W]; takes its share off the end of `skips`. The result has the size of the skip that comes next.
  torch::Tensor forward(torch::Tensor x, const BlockConditions& conditions, std::vector<torch::Tensor>& skips);

 private:
  std::unique_ptr<ModuleList<Upsample2D>> upsamplers_;
};
TORCH_MODULE(UpBlock2D);

}  // namespace sdtune::model
