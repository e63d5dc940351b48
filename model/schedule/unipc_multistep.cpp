#include "model/schedule/unipc_multistep.h"

#include <algorithm>

namespace sdtune::model {
namespace {

// The weights [K] of K differences whose places are `ratios` of the step: those with which polynomials up to degree K
// are integrated exactly (equation 9 of the paper). `h` carries the sign of the form that is solved.
torch::Tensor difference_weights(const std::vector<torch::Tensor>& ratios, const torch::Tensor& h,
                                 const torch::Tensor& b_of_h) {
  if (ratios.size() == 1) return torch::full({1}, 0.5, torch::kFloat32);  // the paper's choice, not exact for one
  const torch::Tensor places = torch::stack(ratios);
  std::vector<torch::Tensor> powers;
  std::vector<torch::Tensor> integrals;
  torch::Tensor phi = torch::expm1(h) / h - 1;
  double factorial = 1;
  for (std::size_t degree = 0; degree < ratios.size(); ++degree) {
    powers.push_back(places.pow(static_cast<double>(degree)));
    integrals.push_back(phi * factorial / b_of_h);
    factorial *= static_cast<double>(degree + 2);
    phi = phi / h - 1 / factorial;
  }
  return at::linalg_solve(torch::stack(powers), torch::stack(integrals));
}

}  // namespace

ConfigKeys UniPcMultistepScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("linspace"),
                    sigma_curve_keys(),
                    solver_keys(),
                    {{"predict_x0", true},
                     // DPM-Solver's and DEIS' solvers, where the config was theirs, stand for bh2 (as in diffusers).
                     {"solver_type", "bh2", {"bh1", "bh2", "midpoint", "heun", "logrho"}},
                     {"disable_corrector", Json::array()},
                     {"solver_p", nullptr, {nullptr}},
                     {"time_shift_type", "exponential", {"exponential"}},
                     {"sigma_min", nullptr},
                     {"sigma_max", nullptr},
                     {"shift_terminal", nullptr, {nullptr}}}});
}

UniPcMultistepScheduler::UniPcMultistepScheduler(const Json& config)
    : LogSnrScheduler(kClassName, config, keys()),
      solver_order_(config["solver_order"]),
      predicts_x0_(config["predict_x0"]),
      is_bh1_(config["solver_type"] == "bh1") {}

void UniPcMultistepScheduler::start_run(std::int64_t num_inference_steps) {
  RunLevels levels = run_levels(num_inference_steps);
  levels.sigmas.push_back(config()["final_sigmas_type"] == "sigma_min" ? levels.lowest : 0.0);
  begin(levels.timesteps, levels.sigmas);
  outputs_.clear();
  last_sample_ = torch::Tensor();
}

std::int64_t UniPcMultistepScheduler::order_of_step(std::int64_t index) const {
  const auto known = static_cast<std::int64_t>(outputs_.size());
  const std::int64_t left = timesteps_.size(0) - index;
  return std::min(known, config()["lower_order_final"].get<bool>() ? std::min(solver_order_, left) : solver_order_);
}

bool UniPcMultistepScheduler::is_corrected(std::int64_t index) const {
  const Json& disabled = config()["disable_corrector"];
  return std::find(disabled.begin(), disabled.end(), Json(index)) == disabled.end();
}

torch::Tensor UniPcMultistepScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                               NoiseSource&, const StepOptions&) {
  const std::int64_t index = step_index(t);
  const Level level = level_at(index);
  torch::Tensor x = sample.to(torch::kFloat32);
  const NoiseLevel noise_level{level.alpha, level.sigma};
  const torch::Tensor output = predicts_x0_ ? predicted_x0(prediction_type(), model_output, x, noise_level)
                                            : predicted_epsilon(prediction_type(), model_output, x, noise_level);
  if (last_sample_.defined() && is_corrected(index - 1)) x = update(last_order_, index - 1, last_sample_, output);

  if (static_cast<std::int64_t>(outputs_.size()) == solver_order_) outputs_.erase(outputs_.begin());
  outputs_.push_back(output);
  last_order_ = order_of_step(index);
  last_sample_ = x;
  const torch::Tensor previous = update(last_order_, index, x, torch::Tensor());
  finish_step();
  return previous.to(model_output.scalar_type());
}

torch::Tensor UniPcMultistepScheduler::update(std::int64_t order, std::int64_t index, const torch::Tensor& sample,
                                              const torch::Tensor& output_there) const {
  const Level from = level_at(index);
  const Level to = level_at(index + 1);
  const torch::Tensor& newest = outputs_.back();
  if (to.sigma.item<float>() == 0) {
    // The step is infinite: what is left of the solution is x0.
    return predicts_x0_ ? newest : (sample - from.sigma * newest) / from.alpha;
  }
  const torch::Tensor step = to.lambda - from.lambda;
  const torch::Tensor h = predicts_x0_ ? -step : step;
  const torch::Tensor growth = torch::expm1(h);
  const torch::Tensor b_of_h = is_bh1_ ? h : growth;
  const torch::Tensor decay = predicts_x0_ ? to.sigma / from.sigma : to.alpha / from.alpha;
  const torch::Tensor& scale = predicts_x0_ ? to.alpha : to.sigma;
  torch::Tensor result = decay * sample - scale * growth * newest;

  std::vector<torch::Tensor> ratios;
  std::vector<torch::Tensor> differences;
  for (std::int64_t ago = 1; ago < order; ++ago) {
    const torch::Tensor& older = outputs_[outputs_.size() - 1 - static_cast<std::size_t>(ago)];
    ratios.push_back((level_at(index - ago).lambda - from.lambda) / step);
    differences.push_back((older - newest) / ratios.back());
  }
  if (output_there.defined()) {
    ratios.push_back(torch::ones({}, torch::kFloat32));
    differences.push_back(output_there - newest);
  }
  if (differences.empty()) return result;
  const torch::Tensor weights = difference_weights(ratios, h, b_of_h);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    result = result - scale * b_of_h * weights[static_cast<std::int64_t>(i)] * differences[i];
  }
  return result;
}

}  // namespace sdtune::model
