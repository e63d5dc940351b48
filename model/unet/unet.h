// UNet2DConditionModel: the denoiser of Rombach et al., "High-resolution image synthesis with latent diffusion models"
// (CVPR 2022), and of SDXL (Podell et al., 2023). Parameter names are diffusers'.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "model/nn/linear.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"
#include "model/unet/time_embedding.h"
#include "model/unet/unet_blocks.h"
#include "model/unet/unet_config.h"

namespace sdtune::model {

// What SDXL is conditioned on besides the prompt; both undefined for models without text_time.
struct AddedConditions {
  torch::Tensor text_embeds;  // [B, P]: pooled text
  torch::Tensor time_ids;     // [B, 6]: original size, crop corner, target size, px
};

class UNet2DConditionModelImpl : public torch::nn::Module {
 public:
  explicit UNet2DConditionModelImpl(const UNetConfig& config);

  // sample [B, in_channels, H, W]; timestep [B], [1] or a scalar, any dtype; context [B, M, cross_attention_dim]
  // -> [B, out_channels, H, W] in the dtype of the weights. Inputs are cast to that dtype. `cache` saves keys and
  // values of the context between calls that share it.
  torch::Tensor forward(const torch::Tensor& sample, const torch::Tensor& timestep, const torch::Tensor& context,
                        const AddedConditions& added = {}, ContextCache* cache = nullptr);

  const UNetConfig& config() const { return config_; }
  // Frees activations of the blocks and computes them again in backward: less memory, one more forward.
  void set_gradient_checkpointing(bool on);
  // Told in forward which part begins: conv_in, down_blocks.0, .., mid_block, .., up_blocks.0, .., conv_out. Empty:
  // no listener is set.
  using PartListener = std::function<void(const std::string& part)>;
  void set_part_listener(PartListener listener) { on_part_ = std::move(listener); }

 private:
  void tell(const std::string& part) const {
    if (on_part_) on_part_(part);
  }
  torch::Tensor time_embedding(const torch::Tensor& timestep, int64_t batch, const AddedConditions& added);

  UNetConfig config_;
  PartListener on_part_;
  Conv2d conv_in_ = nullptr;
  TimestepEmbedding time_embedding_ = nullptr;
  TimestepEmbedding add_embedding_ = nullptr;
  std::unique_ptr<ModuleList<DownBlock2D>> down_blocks_;
  MidBlock2D mid_block_ = nullptr;
  std::unique_ptr<ModuleList<UpBlock2D>> up_blocks_;
  GroupNorm conv_norm_out_ = nullptr;
  Conv2d conv_out_ = nullptr;
};
TORCH_MODULE(UNet2DConditionModel);

}  // namespace sdtune::model
