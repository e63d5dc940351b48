#include "model/schedule/scheduler.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/base/error.h"
#include "model/schedule/sigma_spacing.h"

namespace sdtune::model {

Scheduler::Scheduler(std::string class_name, Json config, NoiseSchedule noise_schedule)
    : class_name_(std::move(class_name)), config_(std::move(config)), noise_schedule_(std::move(noise_schedule)) {}

void Scheduler::set_timesteps(std::int64_t num_inference_steps) {
  const std::int64_t limit = noise_schedule_.num_train_timesteps();
  if (num_inference_steps < 1 || num_inference_steps > limit) {
    throw ConfigError("num_inference_steps", "is out of range (got " + std::to_string(num_inference_steps) +
                                                 "; allowed: 1.." + std::to_string(limit) + ")");
  }
  num_inference_steps_ = num_inference_steps;
  given_timesteps_.clear();
  begin_index_.reset();
  start_run(num_inference_steps);
}

void Scheduler::set_timesteps(const std::vector<std::int64_t>& timesteps) {
  if (const std::string fault = fault_of_given_timesteps(); !fault.empty()) throw ConfigError("timesteps", fault);
  const std::int64_t limit = noise_schedule_.num_train_timesteps();
  const bool descend = std::adjacent_find(timesteps.begin(), timesteps.end(), std::less_equal<>()) == timesteps.end();
  if (timesteps.empty() || !descend || timesteps.front() >= limit || timesteps.back() < 0) {
    throw ConfigError("timesteps",
                      "do not descend within the training's (allowed: " + std::to_string(limit - 1) + "..0)");
  }
  num_inference_steps_ = std::ssize(timesteps);
  given_timesteps_.assign(timesteps.begin(), timesteps.end());
  begin_index_.reset();
  start_run(num_inference_steps_);
}

void Scheduler::set_begin_index(std::int64_t begin_index) {
  TORCH_CHECK(num_inference_steps_ > 0, class_name_, ": set_begin_index before set_timesteps");
  if (begin_index < 0 || begin_index >= timesteps_.size(0)) {
    throw ConfigError("begin_index", "is out of range (got " + std::to_string(begin_index) + "; allowed: 0.." +
                                         std::to_string(timesteps_.size(0) - 1) + ")");
  }
  begin_index_ = begin_index;
}

std::int64_t Scheduler::first_index(double t) const {
  return begin_index_ ? *begin_index_ : index_of_timestep(timesteps_, t);
}

std::string Scheduler::fault_of_given_timesteps() const {
  return "cannot be given to " + class_name_ +
         " (allowed with: DDPMScheduler, EulerDiscreteScheduler, HeunDiscreteScheduler, DPMSolverMultistepScheduler, "
         "LCMScheduler)";
}

void Scheduler::require_timesteps_below_limit() const {
  const std::int64_t limit = noise_schedule_.num_train_timesteps();
  const std::int64_t highest = timesteps_.max().item<std::int64_t>();
  if (highest >= limit) {
    throw ConfigError("num_inference_steps",
                      "with this steps_offset leads to timestep " + std::to_string(highest) + " (allowed: 0.." +
                          std::to_string(limit - 1) + ")",
                      "take fewer steps, or steps_offset 0");
  }
}

torch::Tensor Scheduler::scale_model_input(const torch::Tensor& sample, double t) {
  TORCH_CHECK(num_inference_steps_ > 0, class_name_, ": scale_model_input before set_timesteps");
  return scaled_input(sample, t);
}

torch::Tensor Scheduler::step(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                              NoiseSource& noise, const StepOptions& options) {
  TORCH_CHECK(num_inference_steps_ > 0, class_name_, ": step before set_timesteps");
  TORCH_CHECK(model_output.sizes() == sample.sizes(), class_name_, ": model_output ", model_output.sizes(),
              " and sample ", sample.sizes());
  index_of_timestep(timesteps_, t);  // refuses a t of another run
  return advance(model_output, t, sample, noise, options);
}

torch::Tensor Scheduler::add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                   const torch::Tensor& timesteps) const {
  return noise_schedule_.to(x0.device()).add_noise(x0, noise, timesteps.to(x0.device(), torch::kInt64));
}

torch::Tensor Scheduler::scaled_input(const torch::Tensor& sample, double) {
  return sample;
}

}  // namespace sdtune::model
