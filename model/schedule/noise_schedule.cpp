#include "model/schedule/noise_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/schedule/prediction.h"
#include "model/schedule/scheduler_config.h"

namespace sdtune::model {
namespace {

// Nichol & Dhariwal, "Improved denoising diffusion probabilistic models" (2021): abar follows a squared cosine.
torch::Tensor squared_cosine_betas(std::int64_t count) {
  constexpr double kMaxBeta = 0.999;
  constexpr double kOffset = 0.008;
  const auto alpha_bar = [](double time) {
    const double cosine = std::cos((time + kOffset) / (1 + kOffset) * std::numbers::pi / 2);
    return cosine * cosine;
  };
  std::vector<float> betas;
  for (std::int64_t i = 0; i < count; ++i) {
    const double from = static_cast<double>(i) / static_cast<double>(count);
    const double to = static_cast<double>(i + 1) / static_cast<double>(count);
    betas.push_back(static_cast<float>(std::min(1 - alpha_bar(to) / alpha_bar(from), kMaxBeta)));
  }
  return torch::tensor(betas, torch::kFloat32);
}

torch::Tensor make_betas(const BetaOptions& options) {
  if (!options.trained_betas.empty()) return torch::tensor(options.trained_betas, torch::kFloat32);
  if (options.beta_schedule == "squaredcos_cap_v2") return squared_cosine_betas(options.num_train_timesteps);
  if (options.beta_schedule == "scaled_linear") {
    return torch::linspace(std::sqrt(options.beta_start), std::sqrt(options.beta_end), options.num_train_timesteps,
                           torch::kFloat32)
        .square();
  }
  TORCH_CHECK(options.beta_schedule == "linear", "beta_schedule ", options.beta_schedule);
  return torch::linspace(options.beta_start, options.beta_end, options.num_train_timesteps, torch::kFloat32);
}

// Shifts and scales sqrt(abar) so that the first stays and the last is zero (algorithm 1 of Lin et al.).
torch::Tensor rescale_to_zero_snr(const torch::Tensor& betas) {
  torch::Tensor root = torch::cumprod(1 - betas, 0).sqrt();
  const torch::Tensor first = root[0].clone();
  const torch::Tensor last = root[-1].clone();
  root = (root - last) * (first / (first - last));
  const torch::Tensor alpha_bar = root.square();
  const torch::Tensor alphas =
      torch::cat({alpha_bar.slice(0, 0, 1), alpha_bar.slice(0, 1) / alpha_bar.slice(0, 0, -1)});
  return 1 - alphas;
}

// The table's entries at timesteps [B], shaped to broadcast over x [B, ...].
torch::Tensor per_sample(const torch::Tensor& table, const torch::Tensor& timesteps, const torch::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = timesteps.numel();
  return table.index_select(0, timesteps.flatten()).view(shape);
}

NoiseLevel level_at(const torch::Tensor& alphas_cumprod, const torch::Tensor& timesteps, const torch::Tensor& x) {
  const torch::Tensor alpha_bar = per_sample(alphas_cumprod, timesteps, x);
  return {alpha_bar.sqrt(), (1 - alpha_bar).sqrt()};
}

}  // namespace

NoiseSchedule::NoiseSchedule(const BetaOptions& options) {
  betas = make_betas(options);
  if (options.rescale_betas_zero_snr) betas = rescale_to_zero_snr(betas);
  alphas_cumprod = torch::cumprod(1 - betas, 0);
}

NoiseSchedule NoiseSchedule::from_config(const Json& scheduler_config, const std::string& where) {
  const ConfigKeys keys = join_keys({beta_keys(), {{"rescale_betas_zero_snr", false}}});
  return NoiseSchedule(beta_options(resolve_config("", keys, scheduler_config, where), keys));
}

torch::Tensor NoiseSchedule::final_alpha_cumprod(bool set_alpha_to_one) const {
  return set_alpha_to_one ? torch::ones({}, torch::kFloat32) : alphas_cumprod[0];
}

NoiseSchedule NoiseSchedule::to(const torch::Device& device) const {
  NoiseSchedule out = *this;
  out.betas = betas.to(device);
  out.alphas_cumprod = alphas_cumprod.to(device);
  return out;
}

torch::Tensor NoiseSchedule::add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                       const torch::Tensor& timesteps) const {
  const NoiseLevel level = level_at(alphas_cumprod, timesteps, x0);
  return (level.alpha * x0 + level.sigma * noise).to(x0.scalar_type());
}

torch::Tensor NoiseSchedule::velocity(const torch::Tensor& x0, const torch::Tensor& noise,
                                      const torch::Tensor& timesteps) const {
  return model::velocity(x0, noise, level_at(alphas_cumprod, timesteps, x0)).to(x0.scalar_type());
}

torch::Tensor NoiseSchedule::snr(const torch::Tensor& timesteps) const {
  const torch::Tensor alpha_bar = alphas_cumprod.index_select(0, timesteps.flatten());
  return alpha_bar / (1 - alpha_bar);
}

}  // namespace sdtune::model
