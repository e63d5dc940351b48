// Training the portrait base's autoencoder.
#pragma once

#include "model/vae/autoencoder_kl.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {

// What is lost between images and their reconstructions, both [B, 3, H, W] in [-1, 1], scalar: the mean absolute
// error, half the mean squared error, half the mean absolute error of the differences between neighbouring pixels
// (edges are what an eye is made of), and a little divergence from a standard normal latent (Kingma & Welling 2014).
torch::Tensor vae_loss(const torch::Tensor& images, const torch::Tensor& decoded, const model::Moments& moments);

class VaeStage final : public Stage {
 public:
  VaeStage(model::AutoencoderKL vae, ImagePool& pool, std::uint64_t seed, std::int64_t batch_size);

  std::string name() const override { return "vae"; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return batch_size_; }
  torch::Tensor loss(std::uint64_t step) override;

 private:
  model::AutoencoderKL vae_;
  ImagePool& pool_;
  PoolOrder order_;
  std::uint64_t seed_;
  std::int64_t batch_size_;
};

}  // namespace sdtune::train::pretrain
