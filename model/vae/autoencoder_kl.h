// AutoencoderKL of Rombach et al., "High-resolution image synthesis with latent diffusion models" (CVPR 2022).
// Parameter names are diffusers'.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "model/nn/linear.h"
#include "model/vae/decoder.h"
#include "model/vae/encoder.h"
#include "model/vae/vae_config.h"

namespace sdtune::model {

// A diagonal Gaussian over latents, without the scaling factor; both [B, latent_channels, H / f, W / f].
struct Moments {
  torch::Tensor mean;
  torch::Tensor logvar;  // within [-30, 20]
};

class AutoencoderKLImpl : public torch::nn::Module {
 public:
  explicit AutoencoderKLImpl(const VaeConfig& config);

  Moments encode(const torch::Tensor& image);  // [B, 3, H, W] in [-1, 1]; H and W multiples of config().downscale()
  torch::Tensor decode(
      const torch::Tensor& latents);  // [B, latent_channels, h, w] -> [B, 3, h * f, w * f], about [-1, 1]

  const VaeConfig& config() const { return config_; }

 private:
  VaeConfig config_;
  VaeEncoder encoder_;
  VaeDecoder decoder_;
  Conv2d quant_conv_ = nullptr, post_quant_conv_ = nullptr;
};
TORCH_MODULE(AutoencoderKL);

}  // namespace sdtune::model
