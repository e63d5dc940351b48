#include "model/schedule/ddim.h"

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys DdimScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("leading"),
                    clipping_keys(),
                    {{"set_alpha_to_one", true},
                     {"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
                     {"rescale_betas_zero_snr", false}}});
}

DdimScheduler::DdimScheduler(const Json& config)
    : Scheduler(kClassName, config, NoiseSchedule(beta_options(config, keys()))),
      prediction_type_(prediction_type_of(config)),
      spacing_(config["timestep_spacing"]),
      steps_offset_(config["steps_offset"]),
      clip_range_(clip_range(config)),
      final_alpha_cumprod_(noise_schedule().final_alpha_cumprod(config["set_alpha_to_one"])) {}

void DdimScheduler::start_run(std::int64_t num_inference_steps) {
  std::vector<double> timesteps =
      spaced_timesteps(spacing_, noise_schedule().num_train_timesteps(), num_inference_steps, steps_offset_);
  round_all(timesteps);
  timesteps_ = integer_tensor(timesteps);
  require_timesteps_below_limit();
}

torch::Tensor DdimScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                     NoiseSource& noise, const StepOptions& options) {
  const torch::Tensor& alphas_cumprod = noise_schedule().alphas_cumprod;
  const auto timestep = static_cast<std::int64_t>(t);
  const std::int64_t previous = timestep - noise_schedule().num_train_timesteps() / num_inference_steps();
  const torch::Tensor alpha_prod = alphas_cumprod[timestep];
  const torch::Tensor alpha_prod_previous = previous >= 0 ? alphas_cumprod[previous] : final_alpha_cumprod_;
  const torch::Tensor beta_prod = 1 - alpha_prod;
  const NoiseLevel level{alpha_prod.sqrt(), beta_prod.sqrt()};

  const torch::Tensor x0 = predicted_x0(prediction_type_, model_output, sample, level).clamp(-clip_range_, clip_range_);
  const torch::Tensor epsilon = predicted_epsilon(prediction_type_, model_output, sample, level);

  // Formulas (12) and (16) of the paper.
  const torch::Tensor variance = ((1 - alpha_prod_previous) / beta_prod) * (1 - alpha_prod / alpha_prod_previous);
  const torch::Tensor deviation = options.eta * variance.sqrt();
  const torch::Tensor direction = (1 - alpha_prod_previous - deviation.square()).sqrt() * epsilon;
  torch::Tensor result = alpha_prod_previous.sqrt() * x0 + direction;
  if (options.eta > 0) {
    result = result + deviation * noise.draw(model_output.sizes(), model_output.scalar_type(), model_output.device());
  }
  return result;
}

}  // namespace sdtune::model
