#include "model/schedule/sigma_scheduler.h"

#include <cmath>

#include "model/schedule/scheduler_config.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

SigmaScheduler::SigmaScheduler(const char* class_name, const Json& config, const ConfigKeys& keys)
    : Scheduler(class_name, config, NoiseSchedule(beta_options(config, keys))),
      table_(finite_alphas_cumprod(noise_schedule(), own_flag(config, keys, "rescale_betas_zero_snr"))),
      prediction_type_(prediction_type_of(config)),
      spacing_(config["timestep_spacing"]),
      steps_offset_(config["steps_offset"]) {}

std::vector<double> SigmaScheduler::run_timesteps(std::int64_t num_inference_steps) const {
  if (!given_timesteps().empty()) return given_timesteps();
  std::vector<double> timesteps =
      spaced_timesteps(spacing_, noise_schedule().num_train_timesteps(), num_inference_steps, steps_offset_);
  // The model is given float32 timesteps, so the sigmas are those of the rounded values.
  for (double& t : timesteps) t = static_cast<float>(t);
  return timesteps;
}

SigmaScheduler::Levels SigmaScheduler::run_levels(SigmaCurve curve, std::int64_t num_inference_steps) const {
  Levels levels{run_timesteps(num_inference_steps), {}};
  levels.sigmas = table_.interpolate(levels.timesteps);
  if (curve != SigmaCurve::kNone) {
    levels.sigmas = curve_sigmas(curve, levels.sigmas.back(), levels.sigmas.front(), num_inference_steps, config());
    levels.timesteps = table_.timesteps_of(levels.sigmas);
  }
  return levels;
}

void SigmaScheduler::begin(const std::vector<double>& timesteps, const std::vector<double>& sigmas) {
  timesteps_ = float_tensor(timesteps);
  sigmas_ = float_tensor(sigmas);
  step_index_ = -1;
}

double SigmaScheduler::init_noise_sigma() const {
  TORCH_CHECK(sigmas_.defined(), class_name(), ": init_noise_sigma before set_timesteps");
  const torch::Tensor highest = sigmas_.max();
  if (spacing_ != "leading") return highest.item<float>();
  return (highest.square() + 1).sqrt().item<float>();
}

std::int64_t SigmaScheduler::step_index(double t) {
  if (step_index_ < 0) step_index_ = first_index(t);
  TORCH_CHECK(step_index_ < timesteps_.size(0), class_name(), ": step after the end of the run");
  return step_index_;
}

torch::Tensor SigmaScheduler::scaled_input(const torch::Tensor& sample, double t) {
  const torch::Tensor sigma = sigmas_[step_index(t)];
  return sample / (sigma.square() + 1).sqrt();
}

torch::Tensor SigmaScheduler::add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                        const torch::Tensor& timesteps) const {
  TORCH_CHECK(sigmas_.defined(), class_name(), ": add_noise before set_timesteps");
  const torch::Tensor wanted = timesteps.to(torch::kCPU, torch::kFloat64).flatten();
  const bool is_at_step = has_begin_index() && step_index_ >= 0;  // within the run, as diffusers has it
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    indices.push_back(is_at_step ? step_index_ : first_index(wanted[i].item<double>()));
  }
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x0.dim()), 1);
  shape[0] = wanted.numel();
  const torch::Tensor sigma = sigmas_.index_select(0, torch::tensor(indices)).view(shape).to(x0.device());
  return (x0 + noise * sigma).to(x0.scalar_type());
}

}  // namespace sdtune::model
