// The denoising objective: noise a latent to a random timestep, let the UNet predict, compare.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "model/core/random.h"
#include "model/schedule/noise_schedule.h"
#include "model/schedule/prediction.h"
#include "model/unet/unet.h"
#include "train/config/objective_options.h"

namespace sdtune::train {

// Samples that go through the UNet together.
struct DiffusionBatch {
  torch::Tensor latents;               // [B, C, h, w], scaled as the UNet sees them
  torch::Tensor context;               // [B, 77, D]
  model::AddedConditions added;        // SDXL
  std::vector<model::SampleKey> keys;  // B: which draws each sample gets
  torch::Tensor mask = {};             // [B, 1, h, w] float32 in [0, 1]; undefined without masked_loss
};

// What is random about a batch.
struct DiffusionDraws {
  torch::Tensor noise;      // [B, C, h, w] float32
  torch::Tensor timesteps;  // [B] int64
  // More noise [B, C, h, w] float32 that only the UNet sees (Ning et al., "Input perturbation reduces exposure bias in
  // diffusion models", ICML 2023); undefined without input_perturbation.
  torch::Tensor perturbation = {};
};

class DiffusionLoss {
 public:
  // `schedule` on the device of the batches to come. Throws ConfigError for timesteps that it does not have.
  DiffusionLoss(model::NoiseSchedule schedule, model::PredictionType prediction, const ObjectiveOptions& options,
                std::uint64_t seed);

  // Noise and timesteps of the keys for latents of shape [.., C, h, w], on the device.
  DiffusionDraws draw(const std::vector<model::SampleKey>& keys, torch::IntArrayRef latent_shape,
                      torch::Device device) const;

  std::int64_t num_train_timesteps() const { return schedule_.num_train_timesteps(); }

  // The weighted mean error of each sample: [B] float32, with gradients to the UNet and the context.
  torch::Tensor sample_losses(model::UNet2DConditionModel& unet, const DiffusionBatch& batch,
                              const DiffusionDraws& draws) const;

 private:
  model::NoiseSchedule schedule_;
  model::PredictionType prediction_;
  ObjectiveOptions options_;
  std::uint64_t seed_;
};

}  // namespace sdtune::train
