#include "model/schedule/euler_discrete.h"

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys EulerDiscreteScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    {{"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
                     {"interpolation_type", "linear", {"linear", "log_linear"}},
                     {"sigma_min", nullptr},
                     {"sigma_max", nullptr},
                     {"timestep_type", "discrete", {"discrete", "continuous"}},
                     {"rescale_betas_zero_snr", false},
                     {"final_sigmas_type", "zero", {"zero", "sigma_min"}}}});
}

EulerDiscreteScheduler::EulerDiscreteScheduler(const Json& config)
    : SigmaScheduler(kClassName, config, keys()), curve_(sigma_curve(config, keys(), kClassName)) {}

bool EulerDiscreteScheduler::is_continuous() const {
  return config()["timestep_type"] == "continuous" && prediction_type() == PredictionType::kVPrediction;
}

std::string EulerDiscreteScheduler::fault_of_given_timesteps() const {
  return is_continuous() ? "do not go with timestep_type (got continuous; allowed: discrete)" : curve_fault(curve_);
}

void EulerDiscreteScheduler::start_run(std::int64_t num_inference_steps) {
  std::vector<double> timesteps = run_timesteps(num_inference_steps);
  std::vector<double> sigmas = table().interpolate(timesteps);
  if (config()["interpolation_type"] == "log_linear") {
    // One more than there are steps: diffusers leaves the lowest as the last step's end.
    const torch::Tensor line = torch::linspace(table().log_sigmas().back(), table().log_sigmas().front(),
                                               num_inference_steps + 1, torch::kFloat32);
    const torch::Tensor values = line.exp().to(torch::kFloat64);
    sigmas.assign(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  }
  if (curve_ != SigmaCurve::kNone) {
    sigmas = curve_sigmas(curve_, sigmas.back(), sigmas.front(), num_inference_steps, config());
    timesteps = table().timesteps_of(sigmas);
  }
  sigmas.push_back(final_sigma(config(), table()));
  begin(timesteps, sigmas);
  if (is_continuous()) timesteps_ = 0.25 * sigmas_.slice(0, 0, -1).log();
}

torch::Tensor EulerDiscreteScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                              NoiseSource&, const StepOptions&) {
  const std::int64_t index = step_index(t);
  const torch::Tensor sigma = sigmas_[index];
  const torch::Tensor x = sample.to(torch::kFloat32);
  const torch::Tensor x0 = predicted_x0_unscaled(prediction_type(), model_output, x, sigma);
  const torch::Tensor derivative = (x - x0) / sigma;
  const torch::Tensor previous = x + derivative * (sigmas_[index + 1] - sigma);
  finish_step();
  return previous.to(model_output.scalar_type());
}

}  // namespace sdtune::model
