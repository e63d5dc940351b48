#include "model/schedule/dpm_solver_sde.h"

#include <cmath>

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

// The middle in log sigma.
torch::Tensor middle_sigma(const torch::Tensor& from, const torch::Tensor& to) {
  const torch::Tensor start = -from.log();
  return (-(start + (-to.log() - start) * 0.5)).exp();
}

// An ancestral step of the exponential integrator from sigma `from` to `to`, with `draw` standard normal.
torch::Tensor ancestral_step(const torch::Tensor& sample, const torch::Tensor& x0, const torch::Tensor& from,
                             const torch::Tensor& to, const torch::Tensor& draw) {
  const torch::Tensor up = torch::minimum(to, (to.square() * (from.square() - to.square()) / from.square()).sqrt());
  const torch::Tensor down = (to.square() - up.square()).sqrt();
  return down / from * sample - (down.log() - from.log()).expm1() * x0 + draw * up;
}

}  // namespace

ConfigKeys DpmSolverSdeScheduler::keys() {
  return join_keys(
      {beta_keys(0.00085, 0.012),
       spacing_keys("linspace"),
       sigma_curve_keys(),
       {{"prediction_type", "epsilon", {"epsilon", "v_prediction"}}, {"noise_sampler_seed", nullptr, {nullptr}}}});
}

DpmSolverSdeScheduler::DpmSolverSdeScheduler(const Json& config)
    : SigmaScheduler(kClassName, config, keys()), curve_(sigma_curve(config, keys(), kClassName)) {}

void DpmSolverSdeScheduler::start_run(std::int64_t num_inference_steps) {
  const Levels levels = run_levels(curve_, num_inference_steps);
  require_distinct_sigmas(kClassName, levels.sigmas);
  std::vector<double> middles;
  for (std::size_t i = 0; i + 1 < levels.sigmas.size(); ++i) {
    middles.push_back(std::exp((std::log(levels.sigmas[i]) + std::log(levels.sigmas[i + 1])) / 2));
  }
  middles = table().timesteps_of(middles);
  std::vector<double> timesteps;
  for (std::size_t i = 0; i < levels.timesteps.size(); ++i) {
    timesteps.push_back(levels.timesteps[i]);
    if (i < middles.size()) timesteps.push_back(middles[i]);
  }
  std::vector<double> sigmas = visited_twice(levels.sigmas);
  sigmas.push_back(0.0);
  begin(timesteps, sigmas);
  start_sample_ = torch::Tensor();
  first_draw_ = torch::Tensor();
}

DpmSolverSdeScheduler::Step DpmSolverSdeScheduler::step_at(std::int64_t index) const {
  const std::int64_t start = is_second_half() ? index - 1 : index;
  return {sigmas_[start], middle_sigma(sigmas_[start], sigmas_[start + 1]), sigmas_[start + 1]};
}

torch::Tensor DpmSolverSdeScheduler::scaled_input(const torch::Tensor& sample, double t) {
  const Step step = step_at(step_index(t));
  const torch::Tensor& sigma = is_second_half() ? step.middle : step.from;
  return sample / (sigma.square() + 1).sqrt();
}

torch::Tensor DpmSolverSdeScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                             NoiseSource& noise, const StepOptions&) {
  const Step step = step_at(step_index(t));
  const torch::Tensor x = sample.to(torch::kFloat32);
  const torch::Tensor x0 =
      predicted_x0_unscaled(prediction_type(), model_output, x, is_second_half() ? step.middle : step.from);
  torch::Tensor previous;
  if (step.to.item<float>() == 0) {
    previous = x0;
  } else {
    const torch::Tensor draw = noise.draw(model_output.sizes(), model_output.scalar_type(), model_output.device());
    if (is_second_half()) {
      // The motion over the whole step: what the first half saw of it, and the rest.
      const torch::Tensor motion =
          (step.from - step.middle).sqrt() * first_draw_ + (step.middle - step.to).sqrt() * draw;
      previous = ancestral_step(start_sample_, x0, step.from, step.to, motion / (step.from - step.to).sqrt());
      start_sample_ = torch::Tensor();
      first_draw_ = torch::Tensor();
    } else {
      previous = ancestral_step(x, x0, step.from, step.middle, draw);
      start_sample_ = x;
      first_draw_ = draw;
    }
  }
  finish_step();
  return previous.to(model_output.scalar_type());
}

}  // namespace sdtune::model
