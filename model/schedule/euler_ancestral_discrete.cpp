#include "model/schedule/euler_ancestral_discrete.h"

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys EulerAncestralDiscreteScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    {{"prediction_type", "epsilon", {"epsilon", "v_prediction"}}, {"rescale_betas_zero_snr", false}}});
}

EulerAncestralDiscreteScheduler::EulerAncestralDiscreteScheduler(const Json& config)
    : SigmaScheduler(kClassName, config, keys()) {}

void EulerAncestralDiscreteScheduler::start_run(std::int64_t num_inference_steps) {
  const std::vector<double> timesteps = run_timesteps(num_inference_steps);
  std::vector<double> sigmas = table().interpolate(timesteps);
  sigmas.push_back(0.0);
  begin(timesteps, sigmas);
}

torch::Tensor EulerAncestralDiscreteScheduler::advance(const torch::Tensor& model_output, double t,
                                                       const torch::Tensor& sample, NoiseSource& noise,
                                                       const StepOptions&) {
  const std::int64_t index = step_index(t);
  const torch::Tensor sigma = sigmas_[index];
  const torch::Tensor next = sigmas_[index + 1];
  // Where sigma is far above `next`, rounding may put the root above it, and `down` would not be a number.
  const torch::Tensor up =
      torch::minimum(next, (next.square() * (sigma.square() - next.square()) / sigma.square()).sqrt());
  const torch::Tensor down = (next.square() - up.square()).sqrt();

  const torch::Tensor x = sample.to(torch::kFloat32);
  const torch::Tensor x0 = predicted_x0_unscaled(prediction_type(), model_output, x, sigma);
  const torch::Tensor derivative = (x - x0) / sigma;
  const torch::Tensor draw = noise.draw(model_output.sizes(), model_output.scalar_type(), model_output.device());
  const torch::Tensor previous = x + derivative * (down - sigma) + draw * up;
  finish_step();
  return previous.to(model_output.scalar_type());
}

}  // namespace sdtune::model
