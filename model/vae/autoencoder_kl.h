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

  // Images larger than config().sample_size go tile by tile, see vae_tiling.h: less memory, other numbers. Off at
  // first. Not for training: a tile's gradient ends at its edge.
  void set_tiling(bool on) { tiling_ = on; }
  bool tiling() const { return tiling_; }
  // A batch is decoded one image at a time, unless gradients are asked for: less memory, the same numbers. On at
  // first.
  void set_slicing(bool on) { slicing_ = on; }
  bool slicing() const { return slicing_; }

  const VaeConfig& config() const { return config_; }

 private:
  torch::Tensor encode_tile(const torch::Tensor& image);
  torch::Tensor decode_tile(const torch::Tensor& latents);
  torch::Tensor decode_batch(const torch::Tensor& latents);

  VaeConfig config_;
  VaeEncoder encoder_;
  VaeDecoder decoder_;
  Conv2d quant_conv_ = nullptr, post_quant_conv_ = nullptr;
  bool tiling_ = false;
  bool slicing_ = true;
};
TORCH_MODULE(AutoencoderKL);

}  // namespace sdtune::model
