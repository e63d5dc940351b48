// Training the portrait base's autoencoder.
#pragma once

#include <functional>
#include <vector>

#include "model/vae/autoencoder_kl.h"
#include "train/portrait/pretrain/batch_ahead.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/patch_discriminator.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {

// What is lost between images and their reconstructions, both [B, 3, H, W] in [-1, 1], scalar: the mean absolute
// error, half the mean squared error and half the mean absolute error of the differences between neighbouring pixels
// (edges are what an eye is made of). `weights`: [B, 1, H, W], of each pixel; undefined: 1.
torch::Tensor reconstruction_loss(const torch::Tensor& images, const torch::Tensor& decoded,
                                  const torch::Tensor& weights = torch::Tensor());

// The divergence of the latents' distribution from a standard normal one, mean of their places, times 0.0005 (Kingma
// and Welling 2014).
torch::Tensor divergence_loss(const model::Moments& moments);

// The maps of a classifier that perceptual_loss compares, of images [B, 3, H, W].
using FeatureMaps = std::function<std::vector<torch::Tensor>(const torch::Tensor& images)>;

struct VaeStageOptions {
  std::uint64_t seed = 0;
  std::int64_t batch_size = 32;
  std::int64_t images = 0;             // the first so many of the pool are trained on; 0: all
  double head_weight = 1.0;            // of the error on the head, against 1 elsewhere
  double mark_weight = 1.0;            // likewise on marks (mark_mask.h), added to the head's
  double perceptual_weight = 0;        // of perceptual_loss; above 0 with `maps` alone
  double adversarial_share = 0;        // 0: no discriminator; see adversarial_start
  std::int64_t adversarial_start = 0;  // step from which on the discriminator is trained and counts
};

// With a discriminator (VQGAN: Esser et al., "Taming transformers", CVPR 2021) the gradient of its term by the decoded
// image is brought to `adversarial_share` of the norm of that of the other terms, so that neither takes over.
//
// With a fixed encoder the decoder alone is trained, on what that encoder gives: latents keep their meaning, so a UNet
// that was trained on them keeps its own.
class VaeStage final : public Stage {
 public:
  // fixed_encoder: another module than vae, of any number format; null: vae's own encoder, which is trained.
  VaeStage(model::AutoencoderKL vae, ImagePool& pool, const VaeStageOptions& options, FeatureMaps maps = nullptr,
           model::AutoencoderKL fixed_encoder = nullptr);

  std::string name() const override { return "vae"; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return options_.batch_size; }
  torch::Tensor loss(std::uint64_t step) override;

  // Of the decoded image: all but the divergence and the adversarial term.
  torch::Tensor image_loss(const torch::Tensor& images, const torch::Tensor& decoded, const torch::Tensor& weights);

 private:
  // What a step sees, on the host.
  struct Batch {
    torch::Tensor pixels;       // [B, S, S, 3] uint8
    torch::Tensor head, marks;  // masks [B, 1, S, S]; undefined: not weighed
  };
  std::vector<std::int64_t> indices(std::uint64_t step);
  Batch prepare(std::uint64_t step);
  torch::Tensor pixel_weights(const Batch& batch) const;
  model::Moments encode(const torch::Tensor& images);
  torch::Tensor adversarial_loss(const torch::Tensor& images, const torch::Tensor& decoded,
                                 const torch::Tensor& weights);
  const PatchDiscriminator& fixed_discriminator();

  model::AutoencoderKL vae_;
  ImagePool& pool_;
  PoolOrder order_;
  VaeStageOptions options_;
  FeatureMaps maps_;
  model::AutoencoderKL fixed_encoder_;
  PatchDiscriminator discriminator_ = nullptr;
  PatchDiscriminator fixed_ = nullptr;  // the same weights, without gradients: for the autoencoder's own term
  BatchAhead<Batch> batches_;
};

}  // namespace sdtune::train::pretrain
