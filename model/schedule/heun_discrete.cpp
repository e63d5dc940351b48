#include "model/schedule/heun_discrete.h"

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys HeunDiscreteScheduler::keys() {
  constexpr double kMaxRange = 1e6;
  return join_keys({beta_keys(0.00085, 0.012),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    {{"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
                     {"clip_sample", false},
                     {"clip_sample_range", 1.0, {}, 0, kMaxRange}}});
}

HeunDiscreteScheduler::HeunDiscreteScheduler(const Json& config)
    : SigmaScheduler(kClassName, config, keys()),
      curve_(sigma_curve(config, keys(), kClassName)),
      clip_range_(clip_range(config)) {}

std::string HeunDiscreteScheduler::fault_of_given_timesteps() const {
  return curve_fault(curve_);
}

void HeunDiscreteScheduler::start_run(std::int64_t num_inference_steps) {
  const Levels levels = run_levels(curve_, num_inference_steps);
  std::vector<double> sigmas = visited_twice(levels.sigmas);
  sigmas.push_back(0.0);
  begin(visited_twice(levels.timesteps), sigmas);
  start_sample_ = torch::Tensor();
  start_derivative_ = torch::Tensor();
}

torch::Tensor HeunDiscreteScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                             NoiseSource&, const StepOptions&) {
  const std::int64_t index = step_index(t);
  const bool corrects = start_sample_.defined();
  const torch::Tensor sigma = sigmas_[index];
  const torch::Tensor x = sample.to(torch::kFloat32);
  const torch::Tensor x0 =
      predicted_x0_unscaled(prediction_type(), model_output, x, sigma).clamp(-clip_range_, clip_range_);
  const torch::Tensor derivative = (x - x0) / sigma;

  torch::Tensor previous;
  if (corrects) {
    const torch::Tensor step = sigma - sigmas_[index - 1];
    previous = start_sample_ + (start_derivative_ + derivative) / 2 * step;
    start_sample_ = torch::Tensor();
    start_derivative_ = torch::Tensor();
  } else {
    previous = x + derivative * (sigmas_[index + 1] - sigma);
    start_sample_ = x;
    start_derivative_ = derivative;
  }
  finish_step();
  return previous.to(model_output.scalar_type());
}

}  // namespace sdtune::model
