#include "train/objective/diffusion_loss.h"

#include <utility>

#include "model/core/device_copy.h"
#include "train/objective/error_measure.h"
#include "train/objective/loss_weighting.h"

namespace sdtune::train {

DiffusionLoss::DiffusionLoss(model::NoiseSchedule schedule, model::PredictionType prediction,
                             const ObjectiveOptions& options, std::uint64_t seed)
    : schedule_(std::move(schedule)), prediction_(prediction), options_(options), seed_(seed) {
  const std::vector<Problem> problems = timestep_problems(options, schedule_.num_train_timesteps());
  if (!problems.empty()) throw ConfigError(problems);
}

DiffusionDraws DiffusionLoss::draw(const std::vector<model::SampleKey>& keys, torch::IntArrayRef latent_shape,
                                   torch::Device device) const {
  const torch::IntArrayRef shape = latent_shape.slice(1);  // [C, h, w]
  torch::Tensor noise = model::draw_normal_batch(seed_, model::Draw::kNoise, keys, shape, device);
  if (options_.noise_offset > 0) {
    const torch::Tensor shift =
        model::draw_normal_batch(seed_, model::Draw::kNoiseOffset, keys, {shape.front(), 1, 1}, device);
    noise = noise + options_.noise_offset * shift;
  }
  const std::int64_t end = options_.max_timestep.value_or(schedule_.num_train_timesteps());
  const torch::Tensor timesteps =
      model::draw_integer_batch(seed_, model::Draw::kTimestep, keys, end - options_.min_timestep) +
      options_.min_timestep;
  DiffusionDraws draws{noise, model::copy_to_device(timesteps, device)};
  if (options_.input_perturbation > 0) {
    draws.perturbation = options_.input_perturbation *
                         model::draw_normal_batch(seed_, model::Draw::kInputPerturbation, keys, shape, device);
  }
  return draws;
}

torch::Tensor DiffusionLoss::sample_losses(model::UNet2DConditionModel& unet, const DiffusionBatch& batch,
                                           const DiffusionDraws& draws) const {
  const torch::Dtype dtype = batch.latents.scalar_type();
  const torch::Tensor noise = draws.noise.to(dtype);
  const torch::Tensor seen = draws.perturbation.defined() ? (draws.noise + draws.perturbation).to(dtype) : noise;
  const torch::Tensor noisy = schedule_.add_noise(batch.latents, seen, draws.timesteps);  // [B, C, h, w]
  const torch::Tensor target = model::training_target(prediction_, schedule_, batch.latents, noise, draws.timesteps);
  const torch::Tensor predicted = unet->forward(noisy, draws.timesteps, batch.context, batch.added);
  const torch::Tensor difference = predicted.to(torch::kFloat32) - target.to(torch::kFloat32);
  const torch::Tensor widths =
      options_.loss_type == "l2" ? torch::Tensor() : huber_widths(options_, schedule_, draws.timesteps);
  const torch::Tensor errors = element_errors(options_.loss_type, difference, widths);  // [B, C, h, w]
  const torch::Tensor losses =
      batch.mask.defined() ? masked_mean(errors, batch.mask, options_) : mean_of_samples(errors);  // [B]
  if (!options_.snr_gamma) return losses;
  return losses * min_snr_weights(prediction_, schedule_.snr(draws.timesteps), *options_.snr_gamma);
}

}  // namespace sdtune::train
