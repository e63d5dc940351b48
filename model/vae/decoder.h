// The half of the autoencoder that turns latents into images.
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

// diffusers' UpDecoderBlock2D; `level` counts from the smallest map.
class UpDecoderBlockImpl : public torch::nn::Module {
 public:
  UpDecoderBlockImpl(const VaeConfig& config, int64_t level);
  torch::Tensor forward(torch::Tensor x);  // [B, C, h, w] -> [B, C', 2 h, 2 w]; the last level keeps h and w

 private:
  std::unique_ptr<ModuleList<ResnetBlock2D>> resnets_;
  std::unique_ptr<ModuleList<Upsample2D>> upsamplers_;
};
TORCH_MODULE(UpDecoderBlock);

class VaeDecoderImpl : public torch::nn::Module {
 public:
  explicit VaeDecoderImpl(const VaeConfig& config);
  torch::Tensor forward(torch::Tensor x);  // [B, latent_channels, h, w] -> [B, out_channels, h * f, w * f]

 private:
  Conv2d conv_in_ = nullptr;
  std::unique_ptr<ModuleList<UpDecoderBlock>> up_blocks_;
  VaeMidBlock mid_block_ = nullptr;
  GroupNorm conv_norm_out_ = nullptr;
  Conv2d conv_out_ = nullptr;
};
TORCH_MODULE(VaeDecoder);

}  // namespace sdtune::model
