#include "model/schedule/lms_discrete.h"

#include <array>
#include <cmath>

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

constexpr std::size_t kHighestOrder = 4;

}  // namespace

ConfigKeys LmsDiscreteScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    {{"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}}}});
}

LmsDiscreteScheduler::LmsDiscreteScheduler(const Json& config)
    : SigmaScheduler(kClassName, config, keys()), curve_(sigma_curve(config, keys(), kClassName)) {}

void LmsDiscreteScheduler::start_run(std::int64_t num_inference_steps) {
  Levels levels = run_levels(curve_, num_inference_steps);
  require_distinct_sigmas(kClassName, levels.sigmas);
  levels.sigmas.push_back(0.0);
  begin(levels.timesteps, levels.sigmas);
  derivatives_.clear();
}

double LmsDiscreteScheduler::coefficient(std::int64_t order, std::int64_t index, std::int64_t ago) const {
  const float* sigmas = sigmas_.data_ptr<float>();
  const double middle = (static_cast<double>(sigmas[index]) + sigmas[index + 1]) / 2;
  const double half = (static_cast<double>(sigmas[index + 1]) - sigmas[index]) / 2;
  // Gauss and Legendre's rule of two points is exact up to degree 3, which the highest order has.
  double integral = 0;
  for (const double side : std::array{-1.0, 1.0}) {
    const double tau = middle + side * half / std::sqrt(3.0);
    double value = 1;
    for (std::int64_t k = 0; k < order; ++k) {
      if (k == ago) continue;
      const double node = sigmas[index - k];
      value *= (tau - node) / (sigmas[index - ago] - node);
    }
    integral += half * value;
  }
  return integral;
}

torch::Tensor LmsDiscreteScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                            NoiseSource&, const StepOptions&) {
  const std::int64_t index = step_index(t);
  const torch::Tensor sigma = sigmas_[index];
  const torch::Tensor x = sample.to(torch::kFloat32);
  if (derivatives_.size() == kHighestOrder) derivatives_.erase(derivatives_.begin());
  derivatives_.push_back((x - predicted_x0_unscaled(prediction_type(), model_output, x, sigma)) / sigma);

  // The order is the number of known derivatives, so a run that starts in the middle begins with order 1 too.
  const auto order = static_cast<std::int64_t>(derivatives_.size());
  torch::Tensor previous = x;
  for (std::int64_t ago = 0; ago < order; ++ago) {
    previous = previous + coefficient(order, index, ago) * derivatives_[static_cast<std::size_t>(order - 1 - ago)];
  }
  finish_step();
  return previous.to(model_output.scalar_type());
}

}  // namespace sdtune::model
