#include "train/objective/diffusion_loss.h"

#include <utility>

#include "train/objective/weighting.h"

namespace sdtune::train {

DiffusionLoss::DiffusionLoss(model::NoiseSchedule schedule, model::PredictionType prediction,
                             const ObjectiveOptions& options, std::uint64_t seed)
    : schedule_(std::move(schedule)), prediction_(prediction), options_(options), seed_(seed) {}

DiffusionDraws DiffusionLoss::draw(const std::vector<model::SampleKey>& keys, torch::IntArrayRef latent_shape,
                                   torch::Device device) const {
  const torch::IntArrayRef shape = latent_shape.slice(1);  // [C, h, w]
  torch::Tensor noise = model::draw_normal_batch(seed_, model::Draw::kNoise, keys, shape, device);
  if (options_.noise_offset > 0) {
    const torch::Tensor shift =
        model::draw_normal_batch(seed_, model::Draw::kNoiseOffset, keys, {shape.front(), 1, 1}, device);
    noise = noise + options_.noise_offset * shift;
  }
  const torch::Tensor timesteps =
      model::draw_integer_batch(seed_, model::Draw::kTimestep, keys, schedule_.num_train_timesteps());
  return {noise, timesteps.to(device, /*non_blocking=*/true)};
}

torch::Tensor DiffusionLoss::sample_losses(model::UNet2DConditionModel& unet, const DiffusionBatch& batch,
                                           const DiffusionDraws& draws) const {
  const torch::Tensor noise = draws.noise.to(batch.latents.scalar_type());
  const torch::Tensor noisy = schedule_.add_noise(batch.latents, noise, draws.timesteps);  // [B, C, h, w]
  const torch::Tensor target = model::training_target(prediction_, schedule_, batch.latents, noise, draws.timesteps);
  const torch::Tensor predicted = unet->forward(noisy, draws.timesteps, batch.context, batch.added);
  const torch::Tensor error = predicted.to(torch::kFloat32) - target.to(torch::kFloat32);
  const torch::Tensor losses = error.square().flatten(1).mean(1);  // [B]
  if (!options_.snr_gamma) return losses;
  return losses * min_snr_weights(prediction_, schedule_.snr(draws.timesteps), *options_.snr_gamma);
}

}  // namespace sdtune::train
