#include "model/schedule/deis_multistep.h"

#include <algorithm>

namespace sdtune::model {
namespace {

// DPM-Solver's and UniPC's words, where the config was theirs, become the only ones that there are (as in diffusers).
Json with_own_solver(Json config) {
  config["algorithm_type"] = "deis";
  config["solver_type"] = "logrho";
  return config;
}

// Integrals over t of the polynomials in log t that are 1 at `one` and 0 at the others. All 0-dim and float64: their
// differences are a hundredth of them and less, which makes diffusers' float32 leave a run of 30 steps by 3e-5.
torch::Tensor lagrange_integral(const torch::Tensor& t, const torch::Tensor& one, const torch::Tensor& other) {
  return t * (-other.log() + t.log() - 1) / (one.log() - other.log());
}

torch::Tensor lagrange_integral(const torch::Tensor& t, const torch::Tensor& one, const torch::Tensor& other,
                                const torch::Tensor& third) {
  const torch::Tensor log_t = t.log(), c = other.log(), d = third.log();
  const torch::Tensor integral = t * (c * (d - log_t + 1) - d * log_t + d + log_t.square() - 2 * log_t + 2);
  return integral / ((one.log() - c) * (one.log() - d));
}

}  // namespace

ConfigKeys DeisMultistepScheduler::keys() {
  ConfigKeys shared =
      solver_keys();  // diffusers' class has no other last level than the table's lowest, nor such betas
  std::erase_if(shared, [](const ConfigKey& key) {
    return key.name == "final_sigmas_type" || key.name == "rescale_betas_zero_snr";
  });
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    shared,
                    {{"algorithm_type", "deis", {"deis", "dpmsolver", "dpmsolver++"}},
                     {"solver_type", "logrho", {"logrho", "midpoint", "heun", "bh1", "bh2"}},
                     {"time_shift_type", "exponential", {"exponential"}}}});
}

DeisMultistepScheduler::DeisMultistepScheduler(const Json& config)
    : LogSnrScheduler(kClassName, with_own_solver(config), keys()), solver_order_(config["solver_order"]) {}

void DeisMultistepScheduler::start_run(std::int64_t num_inference_steps) {
  RunLevels levels = run_levels(num_inference_steps);
  levels.sigmas.push_back(levels.lowest);  // of a curve twice, so its last step changes nothing (as in diffusers)
  begin(levels.timesteps, levels.sigmas);
  outputs_.clear();
}

std::int64_t DeisMultistepScheduler::order_of_step(std::int64_t index) const {
  const std::int64_t count = timesteps_.size(0);
  const std::int64_t known = std::min(solver_order_, static_cast<std::int64_t>(outputs_.size()));
  if (!config()["lower_order_final"].get<bool>() || count >= kShortRun) return known;
  return std::min(known, count - index);  // 2 of the last step but one, 1 of the last
}

torch::Tensor DeisMultistepScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                              NoiseSource&, const StepOptions&) {
  const std::int64_t index = step_index(t);
  const Level level = level_at(index);
  const torch::Tensor x = sample.to(torch::kFloat32);
  if (static_cast<std::int64_t>(outputs_.size()) == solver_order_) outputs_.erase(outputs_.begin());
  outputs_.push_back(
      predicted_epsilon(prediction_type(), model_output.to(torch::kFloat32), x, {level.alpha, level.sigma}));
  const std::int64_t order = order_of_step(index);
  const torch::Tensor previous = order == 1 ? first_order(index, x) : higher_order(order, index, x);
  finish_step();
  return previous.to(model_output.scalar_type());
}

torch::Tensor DeisMultistepScheduler::rho_at(std::int64_t index) const {
  return sigmas_[index].to(torch::kFloat64);
}

torch::Tensor DeisMultistepScheduler::first_order(std::int64_t index, const torch::Tensor& sample) const {
  const Level from = level_at(index), to = level_at(index + 1);
  const torch::Tensor h = to.lambda - from.lambda;
  return (to.alpha / from.alpha) * sample - (to.sigma * (h.exp() - 1.0)) * outputs_.back();
}

torch::Tensor DeisMultistepScheduler::higher_order(std::int64_t order, std::int64_t index,
                                                   const torch::Tensor& sample) const {
  const torch::Tensor end = rho_at(index + 1), rho = rho_at(index), rho_1 = rho_at(index - 1);
  const auto ago = [this](std::size_t count) -> const torch::Tensor& { return outputs_[outputs_.size() - 1 - count]; };
  torch::Tensor change;
  if (order == 2) {
    const auto share = [&](const torch::Tensor& one, const torch::Tensor& other) {
      return lagrange_integral(end, one, other) - lagrange_integral(rho, one, other);
    };
    change = share(rho, rho_1) * ago(0) + share(rho_1, rho) * ago(1);
  } else {
    const torch::Tensor rho_2 = rho_at(index - 2);
    const auto share = [&](const torch::Tensor& one, const torch::Tensor& other, const torch::Tensor& third) {
      return lagrange_integral(end, one, other, third) - lagrange_integral(rho, one, other, third);
    };
    change = share(rho, rho_1, rho_2) * ago(0) + share(rho_1, rho_2, rho) * ago(1) + share(rho_2, rho, rho_1) * ago(2);
  }
  return level_at(index + 1).alpha * (sample / level_at(index).alpha + change);
}

}  // namespace sdtune::model
