// Training the portrait base's UNet and text encoder together, on cached latents.
#pragma once

#include <torch/types.h>

#include "model/pipeline/bundle.h"
#include "train/objective/diffusion_loss.h"
#include "train/portrait/pretrain/batch_ahead.h"
#include "train/portrait/pretrain/latent_pool.h"
#include "train/portrait/pretrain/pool_order.h"
#include "train/portrait/pretrain/stage.h"

namespace sdtune::train::pretrain {

struct BaseStageOptions {
  std::uint64_t seed = 0;
  std::int64_t batch_size = 32;
  double caption_dropout = 0.1;  // share of empty captions, for classifier-free guidance
  double head_weight = 1.0;      // of the error on the head, against 1 elsewhere
  ObjectiveOptions objective;
};

class BaseStage final : public Stage {
 public:
  // `bundle` is on the device of training, its VAE has its scaling factor.
  BaseStage(model::ModelBundle& bundle, ImagePool& images, LatentPool& latents, const BaseStageOptions& options);

  std::string name() const override { return "base"; }
  std::vector<NamedParameter> parameters() const override;
  std::int64_t batch_size() const override { return options_.batch_size; }
  torch::Tensor loss(std::uint64_t step) override;

  // The caption of a sample: other words for the same image in each epoch, and none for some.
  std::string caption(std::int64_t image, std::uint64_t sample) const;

 private:
  // What a step sees, on the host.
  struct Batch {
    LatentPool::Posterior posterior;
    torch::Tensor ids;   // of the captions, [B, length] int64
    torch::Tensor mask;  // of the heads, [B, 1, h, w]; undefined: not weighed
  };
  std::vector<std::int64_t> indices(std::uint64_t step);
  Batch prepare(std::uint64_t step);
  torch::Tensor latents(const LatentPool::Posterior& posterior, const std::vector<model::SampleKey>& keys);

  model::ModelBundle& bundle_;
  ImagePool& images_;
  LatentPool& latents_;
  BaseStageOptions options_;
  PoolOrder order_;
  DiffusionLoss loss_;
  BatchAhead<Batch> batches_;
};

}  // namespace sdtune::train::pretrain
