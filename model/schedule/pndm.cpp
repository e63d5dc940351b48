#include "model/schedule/pndm.h"

#include "model/base/error.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

constexpr std::int64_t kOrder = 4;

}  // namespace

ConfigKeys PndmScheduler::keys() {
  return join_keys({beta_keys(),
                    spacing_keys("leading"),
                    {{"skip_prk_steps", false},
                     {"set_alpha_to_one", false},
                     {"prediction_type", "epsilon", {"epsilon", "v_prediction"}}}});
}

PndmScheduler::PndmScheduler(const Json& config)
    : Scheduler(kClassName, config, NoiseSchedule(beta_options(config, keys()))),
      prediction_type_(prediction_type_of(config)),
      spacing_(config["timestep_spacing"]),
      steps_offset_(config["steps_offset"]),
      skip_prk_steps_(config["skip_prk_steps"]),
      final_alpha_cumprod_(noise_schedule().final_alpha_cumprod(config["set_alpha_to_one"])) {}

std::int64_t PndmScheduler::stride() const {
  return noise_schedule().num_train_timesteps() / num_inference_steps();
}

void PndmScheduler::start_run(std::int64_t num_inference_steps) {
  std::vector<double> spaced =
      spaced_timesteps(spacing_, noise_schedule().num_train_timesteps(), num_inference_steps, steps_offset_);
  round_all(spaced);
  std::vector<double> visited;
  prk_timesteps_.clear();
  if (skip_prk_steps_) {
    // The second timestep is visited twice: its step is corrected with the output of the next.
    visited = spaced;
    if (spaced.size() > 1) visited.insert(visited.begin() + 1, spaced[1]);
  } else {
    if (num_inference_steps < kOrder) {
      throw ConfigError("num_inference_steps", "is too small for PNDM's Runge-Kutta steps (got " +
                                                   std::to_string(num_inference_steps) + "; allowed: 4 or more)");
    }
    // Each Runge-Kutta step calls the model at its start, twice half-way, and at its end.
    const std::int64_t half_stride = stride() / 2;  // whole, as diffusers has it
    const auto half = static_cast<double>(half_stride);
    for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(kOrder); ++i) {
      visited.insert(visited.end(), {spaced[i], spaced[i + 1] + half, spaced[i + 1] + half, spaced[i + 1]});
    }
    for (const double t : visited) prk_timesteps_.push_back(static_cast<std::int64_t>(t));
    visited.insert(visited.end(), spaced.begin() + kOrder - 1, spaced.end());
  }
  timesteps_ = integer_tensor(visited);
  require_timesteps_below_limit();
  counter_ = 0;
  outputs_.clear();
  accumulated_ = torch::Tensor();
  start_sample_ = torch::Tensor();
}

torch::Tensor PndmScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                     NoiseSource&, const StepOptions&) {
  const auto timestep = static_cast<std::int64_t>(t);
  const torch::Tensor result = counter_ < std::ssize(prk_timesteps_) ? runge_kutta_step(model_output, timestep, sample)
                                                                     : multistep_step(model_output, timestep, sample);
  ++counter_;
  return result;
}

torch::Tensor PndmScheduler::runge_kutta_step(const torch::Tensor& model_output, std::int64_t t,
                                              const torch::Tensor& sample) {
  const std::int64_t previous = t - (counter_ % 2 == 1 ? 0 : stride() / 2);
  const std::int64_t start = prk_timesteps_[static_cast<std::size_t>(counter_ / kOrder * kOrder)];
  torch::Tensor direction = model_output;
  switch (counter_ % kOrder) {
    case 0:
      accumulated_ = 1.0 / 6 * model_output;
      outputs_.push_back(model_output);
      start_sample_ = sample;
      break;
    case 1:
    case 2:
      accumulated_ = accumulated_ + 1.0 / 3 * model_output;
      break;
    default:
      direction = accumulated_ + 1.0 / 6 * model_output;
      break;
  }
  return transfer(start_sample_, start, previous, direction);
}

torch::Tensor PndmScheduler::multistep_step(const torch::Tensor& model_output, std::int64_t t,
                                            const torch::Tensor& sample) {
  if (counter_ == 1) {
    // The second visit of the first step: its mean slope, from where it began.
    const torch::Tensor mean = (model_output + outputs_.back()) / 2;
    return transfer(start_sample_, t + stride(), t, mean);
  }
  if (outputs_.size() == static_cast<std::size_t>(kOrder)) outputs_.erase(outputs_.begin());
  outputs_.push_back(model_output);
  if (counter_ == 0) start_sample_ = sample;
  return transfer(sample, t, t - stride(), combined_output());
}

torch::Tensor PndmScheduler::combined_output() const {
  const auto ago = [this](std::size_t count) -> const torch::Tensor& { return outputs_[outputs_.size() - 1 - count]; };
  switch (outputs_.size()) {
    case 1:
      return ago(0);
    case 2:
      return (3 * ago(0) - ago(1)) / 2;
    case 3:
      return (23 * ago(0) - 16 * ago(1) + 5 * ago(2)) / 12;
    default:
      return (1.0 / 24) * (55 * ago(0) - 59 * ago(1) + 37 * ago(2) - 9 * ago(3));
  }
}

torch::Tensor PndmScheduler::transfer(const torch::Tensor& sample, std::int64_t t, std::int64_t previous,
                                      const torch::Tensor& model_output) const {
  const torch::Tensor& alphas_cumprod = noise_schedule().alphas_cumprod;
  const torch::Tensor alpha_prod = alphas_cumprod[t];
  const torch::Tensor alpha_prod_previous = previous >= 0 ? alphas_cumprod[previous] : final_alpha_cumprod_;
  const torch::Tensor beta_prod = 1 - alpha_prod;
  const torch::Tensor epsilon =
      predicted_epsilon(prediction_type_, model_output, sample, {alpha_prod.sqrt(), beta_prod.sqrt()});
  const torch::Tensor sample_factor = (alpha_prod_previous / alpha_prod).sqrt();
  const torch::Tensor denominator =
      alpha_prod * (1 - alpha_prod_previous).sqrt() + (alpha_prod * beta_prod * alpha_prod_previous).sqrt();
  return sample_factor * sample - (alpha_prod_previous - alpha_prod) * epsilon / denominator;
}

}  // namespace sdtune::model
