#include "train/identity/text_likelihood.h"

#include <ATen/core/grad_mode.h>

#include "model/core/random.h"
#include "model/pipeline/init_image_latents.h"
#include "model/pipeline/prompt_encoding.h"
#include "model/schedule/noise_schedule.h"
#include "model/schedule/prediction.h"

namespace sdtune::train {
namespace {

// [levels] int64: from a quarter to three quarters of the schedule, evenly. Earlier ones show no more than the
// image's grain, later ones hardly the image.
torch::Tensor middle_timesteps(std::int64_t count, std::int64_t levels) {
  std::vector<std::int64_t> timesteps;
  for (std::int64_t i = 0; i < levels; ++i) timesteps.push_back(count / 4 + (2 * i + 1) * count / (4 * levels));
  return torch::tensor(timesteps, torch::kInt64);
}

model::AddedConditions added_conditions(const model::ModelBundle& bundle, const model::PromptEmbeds& embeds,
                                        std::int64_t height, std::int64_t width) {
  if (!bundle.is_xl()) return {};
  const torch::Tensor ids = torch::tensor({height, width, std::int64_t{0}, std::int64_t{0}, height, width});
  return {embeds.pooled, ids.to(bundle.device(), bundle.dtype()).expand({embeds.pooled.size(0), -1})};
}

// [1, C, h, w] float32, scaled as the UNet sees them.
torch::Tensor mean_latents(model::ModelBundle& bundle, const torch::Tensor& image) {
  const model::VaeConfig& config = bundle.vae->config();
  const torch::Tensor mean = bundle.vae->encode(image).mean.to(torch::kFloat32);
  return (mean - config.shift_factor.value_or(0.0)) * config.scaling_factor;
}

// [levels, C, h, w] float32 on the CPU.
torch::Tensor noises(const torch::Tensor& latents, const LikelihoodOptions& options) {
  std::vector<torch::Tensor> drawn;
  for (std::int64_t level = 0; level < options.noise_levels; ++level) {
    const model::DrawKey key = {options.seed, model::Draw::kNoise, static_cast<std::uint64_t>(level), 0, false};
    drawn.push_back(model::draw_normal(key, latents.sizes().slice(1)));
  }
  return torch::stack(drawn);
}

}  // namespace

torch::Tensor text_errors(model::ModelBundle& bundle, const torch::Tensor& images,
                          const std::vector<std::string>& texts, const LikelihoodOptions& options) {
  const torch::NoGradGuard no_gradients;
  const torch::Device device = bundle.device();
  const std::int64_t count = images.size(0), per_image = static_cast<std::int64_t>(texts.size());
  model::prepare_vae(bundle);
  const model::PromptEmbeds embeds = model::encode_prompts(bundle, model::tokenize_prompts(bundle, texts));
  const model::AddedConditions added = added_conditions(bundle, embeds, images.size(2), images.size(3));
  const model::NoiseSchedule schedule = model::NoiseSchedule::from_config(bundle.scheduler_config).to(device);
  const model::PredictionType prediction = model::prediction_type_of(bundle.scheduler_config);
  const torch::Tensor timesteps = middle_timesteps(schedule.num_train_timesteps(), options.noise_levels).to(device);
  const torch::Tensor context = embeds.context.to(device, bundle.dtype());
  torch::Tensor noise, errors = torch::zeros({count, per_image}, torch::kFloat64);
  for (std::int64_t i = 0; i < count; ++i) {
    if (options.stop != nullptr && options.stop->load()) break;
    const torch::Tensor latents = mean_latents(bundle, images.narrow(0, i, 1));
    if (!noise.defined()) noise = noises(latents, options).to(device);
    for (std::int64_t level = 0; level < options.noise_levels; ++level) {
      const torch::Tensor at = timesteps.narrow(0, level, 1), drawn = noise.narrow(0, level, 1);
      const torch::Tensor noisy = schedule.add_noise(latents, drawn, at).to(bundle.dtype());
      const torch::Tensor output =
          bundle.unet->forward(noisy.expand({per_image, -1, -1, -1}), at.expand({per_image}), context, added);
      const torch::Tensor target = model::training_target(prediction, schedule, latents, drawn, at);
      errors[i] += (output.to(torch::kFloat32) - target).square().mean({1, 2, 3}).to(torch::kFloat64).cpu();
    }
  }
  return errors / static_cast<double>(options.noise_levels);
}

}  // namespace sdtune::train
