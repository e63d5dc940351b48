// The half of the autoencoder that turns images into moments of latents.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>

#include "model/nn/module_list.h"
#include "model/nn/norm.h"
#include "model/nn/resample.h"
#include "model/nn/resnet_block.h"
#include "model/vae/vae_config.h"
#include "model/vae/vae_mid_block.h"

namespace sdtune::model {

// diffusers' DownEncoderBlock2D.
class DownEncoderBlockImpl : public torch::nn::Module {
 public:
  DownEncoderBlockImpl(const VaeConfig& config, int64_t level);
  torch::Tensor forward(torch::Tensor x);  // [B, C, H, W] -> [B, C', H / 2, W / 2]; the last level keeps H and W

 private:
  std::unique_ptr<ModuleList<ResnetBlock2D>> resnets_;
  std::unique_ptr<ModuleList<Downsample2D>> downsamplers_;
};
TORCH_MODULE(DownEncoderBlock);

class VaeEncoderImpl : public torch::nn::Module {
 public:
  explicit VaeEncoderImpl(const VaeConfig& config);
  torch::Tensor forward(torch::Tensor x);  // [B, in_channels, H, W] -> [B, 2 * latent_channels, H / f, W / f]

 private:
  Conv2d conv_in_ = nullptr;
  std::unique_ptr<ModuleList<DownEncoderBlock>> down_blocks_;
  VaeMidBlock mid_block_ = nullptr;
  GroupNorm conv_norm_out_ = nullptr;
  Conv2d conv_out_ = nullptr;
};
TORCH_MODULE(VaeEncoder);

}  // namespace sdtune::model
