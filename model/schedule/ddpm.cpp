#include "model/schedule/ddpm.h"

#include <limits>

#include "model/schedule/sigma_spacing.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys DdpmScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("leading"),
                    clipping_keys(),
                    {{"variance_type", "fixed_small", {"fixed_small", "fixed_small_log", "fixed_large"}},
                     {"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
                     {"rescale_betas_zero_snr", false}}});
}

DdpmScheduler::DdpmScheduler(const Json& config)
    : Scheduler(kClassName, config, NoiseSchedule(beta_options(config, keys()))),
      prediction_type_(prediction_type_of(config)),
      spacing_(config["timestep_spacing"]),
      steps_offset_(config["steps_offset"]),
      variance_type_(config["variance_type"]),
      clip_range_(clip_range(config)) {}

void DdpmScheduler::start_run(std::int64_t num_inference_steps) {
  if (!given_timesteps().empty()) {
    timesteps_ = integer_tensor(given_timesteps());
    return;
  }
  std::vector<double> timesteps =
      spaced_timesteps(spacing_, noise_schedule().num_train_timesteps(), num_inference_steps, steps_offset_);
  round_all(timesteps);
  timesteps_ = integer_tensor(timesteps);
  require_timesteps_below_limit();
}

torch::Tensor DdpmScheduler::noise_scale(const torch::Tensor& alpha_prod,
                                         const torch::Tensor& alpha_prod_previous) const {
  constexpr double kSmallestVariance = 1e-20;
  const torch::Tensor beta = 1 - alpha_prod / alpha_prod_previous;
  if (variance_type_ == "fixed_large") return beta.sqrt();
  const torch::Tensor variance = ((1 - alpha_prod_previous) / (1 - alpha_prod) * beta).clamp_min(kSmallestVariance);
  return variance_type_ == "fixed_small" ? variance.sqrt() : (0.5 * variance.log()).exp();
}

torch::Tensor DdpmScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                     NoiseSource& noise, const StepOptions&) {
  const torch::Tensor& alphas_cumprod = noise_schedule().alphas_cumprod;
  const std::int64_t next = index_of_timestep(timesteps_, t) + 1;
  const torch::Tensor alpha_prod = alphas_cumprod[static_cast<std::int64_t>(t)];
  const torch::Tensor alpha_prod_previous = next < timesteps_.size(0)
                                                ? alphas_cumprod[timesteps_[next].item<std::int64_t>()]
                                                : torch::ones({}, torch::kFloat32);
  const torch::Tensor beta_prod = 1 - alpha_prod;
  const torch::Tensor alpha = alpha_prod / alpha_prod_previous;

  const torch::Tensor x0 = predicted_x0(prediction_type_, model_output, sample, {alpha_prod.sqrt(), beta_prod.sqrt()})
                               .clamp(-clip_range_, clip_range_);
  // Formula (7) of the paper: the mean of q(x_{t-1} | x_t, x_0).
  const torch::Tensor x0_factor = alpha_prod_previous.sqrt() * (1 - alpha) / beta_prod;
  const torch::Tensor sample_factor = alpha.sqrt() * (1 - alpha_prod_previous) / beta_prod;
  torch::Tensor previous = x0_factor * x0 + sample_factor * sample;
  if (t > 0) {
    const torch::Tensor draw = noise.draw(model_output.sizes(), model_output.scalar_type(), model_output.device());
    previous = previous + noise_scale(alpha_prod, alpha_prod_previous) * draw;
  }
  return previous;
}

}  // namespace sdtune::model
