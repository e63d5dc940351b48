#include "model/schedule/dpm_solver_multistep.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/error.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

// DEIS' algorithm, where the config was its, becomes the default (as in diffusers).
Json with_own_algorithm(Json config) {
  if (config["algorithm_type"] == "deis") config["algorithm_type"] = "dpmsolver++";
  return config;
}

}  // namespace

ConfigKeys DpmSolverMultistepScheduler::keys() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    solver_keys(),
                    {{"algorithm_type", "dpmsolver++", {"dpmsolver++", "sde-dpmsolver++", "deis"}},
                     // UniPC's and DEIS' solvers, where the config was theirs, stand for the default (as in diffusers).
                     {"solver_type", "midpoint", {"midpoint", "heun", "bh1", "bh2", "logrho"}},
                     {"euler_at_final", false},
                     {"use_lu_lambdas", false},
                     {"lambda_min_clipped", -kInfinity},
                     // DDPM's variances, where the config was its, have no effect (as in diffusers).
                     {"variance_type", nullptr, {nullptr, "fixed_small", "fixed_small_log", "fixed_large"}},
                     {"time_shift_type", "exponential"}}});
}

DpmSolverMultistepScheduler::DpmSolverMultistepScheduler(const Json& config)
    : LogSnrScheduler(kClassName, with_own_algorithm(config), keys()),
      solver_order_(config["solver_order"]),
      is_sde_(config["algorithm_type"] == "sde-dpmsolver++"),
      is_heun_(config["solver_type"] == "heun") {}

std::int64_t DpmSolverMultistepScheduler::timestep_limit() const {
  const torch::Tensor lambdas = alphas_cumprod().sqrt().log() - (1 - alphas_cumprod()).sqrt().log();
  const double lowest = config()["lambda_min_clipped"];
  const auto limit = (lambdas >= lowest).sum().item<std::int64_t>();
  if (limit == 0) {
    throw ConfigError("lambda_min_clipped", "leaves no timestep (got " + config()["lambda_min_clipped"].dump() +
                                                "; allowed: at most " + Json(lambdas.max().item<double>()).dump() +
                                                ")");
  }
  return limit;
}

std::string DpmSolverMultistepScheduler::fault_of_given_timesteps() const {
  return curve_fault(curve());
}

void DpmSolverMultistepScheduler::start_run(std::int64_t num_inference_steps) {
  std::vector<double> timesteps = run_timesteps(timestep_limit(), num_inference_steps);
  std::vector<double> sigmas = table().interpolate(timesteps);
  if (curve() != SigmaCurve::kNone) {
    sigmas = curve_sigmas(curve(), table().first(), table().last(), num_inference_steps, config());
    timesteps = table().timesteps_of(sigmas);
    if (curve() != SigmaCurve::kExponential && config()["beta_schedule"] != "squaredcos_cap_v2") round_all(timesteps);
  }
  if (solver_order_ > 1) require_distinct_sigmas(kClassName, sigmas);
  sigmas.push_back(final_sigma(config(), table()));
  begin(timesteps, sigmas);
  outputs_.clear();
}

std::int64_t DpmSolverMultistepScheduler::order_of_step(std::int64_t index) const {
  const std::int64_t count = timesteps_.size(0);
  const bool lower_order_final = config()["lower_order_final"].get<bool>() && count < kShortRun;
  const bool first_order_last =
      config()["euler_at_final"].get<bool>() || lower_order_final || config()["final_sigmas_type"] == "zero";
  std::int64_t order = std::min(solver_order_, static_cast<std::int64_t>(outputs_.size()));
  if (index == count - 1 && first_order_last) order = 1;
  if (index == count - 2 && lower_order_final) order = std::min<std::int64_t>(order, 2);
  return order;
}

torch::Tensor DpmSolverMultistepScheduler::advance(const torch::Tensor& model_output, double t,
                                                   const torch::Tensor& sample, NoiseSource& noise,
                                                   const StepOptions&) {
  const std::int64_t index = step_index(t);
  const Level level = level_at(index);
  const torch::Tensor x0 = predicted_x0(prediction_type(), model_output, sample, {level.alpha, level.sigma});
  if (static_cast<std::int64_t>(outputs_.size()) == solver_order_) outputs_.erase(outputs_.begin());
  outputs_.push_back(x0);

  const torch::Tensor x = sample.to(torch::kFloat32);
  const std::int64_t order = order_of_step(index);
  const torch::Tensor previous = is_sde_
                                     ? solve_sde(order, index, x, noise.draw(x.sizes(), torch::kFloat32, x.device()))
                                     : solve_ode(order, index, x);
  finish_step();
  return previous.to(x0.scalar_type());
}

DpmSolverMultistepScheduler::Differences DpmSolverMultistepScheduler::differences(std::int64_t order,
                                                                                  std::int64_t index,
                                                                                  const torch::Tensor& h) const {
  Differences out;
  if (order < 2) return out;
  const auto ago = [this](std::size_t count) -> const torch::Tensor& { return outputs_[outputs_.size() - 1 - count]; };
  const torch::Tensor lambda = level_at(index).lambda;
  const torch::Tensor lambda_1 = level_at(index - 1).lambda;
  const torch::Tensor r0 = (lambda - lambda_1) / h;
  out.first = (1.0 / r0) * (ago(0) - ago(1));
  if (order < 3) return out;
  const torch::Tensor r1 = (lambda_1 - level_at(index - 2).lambda) / h;
  const torch::Tensor change = out.first - (1.0 / r1) * (ago(1) - ago(2));
  out.first = out.first + (r0 / (r0 + r1)) * change;
  out.second = (1.0 / (r0 + r1)) * change;
  return out;
}

torch::Tensor DpmSolverMultistepScheduler::solve_ode(std::int64_t order, std::int64_t index,
                                                     const torch::Tensor& sample) const {
  const Level from = level_at(index);
  const Level to = level_at(index + 1);
  const torch::Tensor h = to.lambda - from.lambda;
  const torch::Tensor decay = (-h).exp() - 1.0;
  torch::Tensor result = (to.sigma / from.sigma) * sample - (to.alpha * decay) * outputs_.back();
  const Differences d = differences(order, index, h);
  if (order == 2 && !is_heun_) result = result - 0.5 * (to.alpha * decay) * d.first;
  if (order == 3 || (order == 2 && is_heun_)) result = result + (to.alpha * (decay / h + 1.0)) * d.first;
  if (order == 3) result = result - (to.alpha * ((decay + h) / h.square() - 0.5)) * d.second;
  return result;
}

torch::Tensor DpmSolverMultistepScheduler::solve_sde(std::int64_t order, std::int64_t index,
                                                     const torch::Tensor& sample, const torch::Tensor& draw) const {
  const Level from = level_at(index);
  const Level to = level_at(index + 1);
  const torch::Tensor h = to.lambda - from.lambda;
  const torch::Tensor growth = 1.0 - (-2.0 * h).exp();
  torch::Tensor result = (to.sigma / from.sigma * (-h).exp()) * sample + (to.alpha * growth) * outputs_.back();
  const Differences d = differences(order, index, h);
  if (order == 2 && !is_heun_) result = result + 0.5 * (to.alpha * growth) * d.first;
  if (order == 3 || (order == 2 && is_heun_)) {
    result = result + (to.alpha * (growth / (-2.0 * h) + 1.0)) * d.first;
  }
  if (order == 3) {
    result = result + (to.alpha * ((growth - 2.0 * h) / (2.0 * h).square() - 0.5)) * d.second;
  }
  return result + (to.sigma * growth.sqrt()) * draw;
}

}  // namespace sdtune::model
