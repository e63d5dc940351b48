// The discriminator of the autoencoder's adversarial term.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "model/nn/linear.h"
#include "model/nn/norm.h"

namespace sdtune::train::pretrain {

// Tells renders from reconstructions patch by patch, each of 34 x 34 pixels (PatchGAN: Isola et al., "Image-to-image
// translation with conditional adversarial networks", CVPR 2017), with group norms, so that an image's score does not
// depend on the rest of its batch.
class PatchDiscriminatorImpl : public torch::nn::Module {
 public:
  explicit PatchDiscriminatorImpl(std::int64_t width = 32);

  // images [B, 3, H, W] in [-1, 1] -> [B, 1, H / 4 - 2, W / 4 - 2], high for renders.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  model::Conv2d conv_in_;
  model::Conv2d conv_down_;
  model::GroupNorm norm_down_;
  model::Conv2d conv_mid_;
  model::GroupNorm norm_mid_;
  model::Conv2d conv_out_;
};
TORCH_MODULE(PatchDiscriminator);

// Hinge losses (Lim and Ye, "Geometric GAN", 2017), scalars.
torch::Tensor discriminator_loss(const torch::Tensor& real_scores, const torch::Tensor& fake_scores);
torch::Tensor generator_loss(const torch::Tensor& fake_scores);

}  // namespace sdtune::train::pretrain
