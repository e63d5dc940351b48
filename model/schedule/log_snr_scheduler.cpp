#include "model/schedule/log_snr_scheduler.h"

#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {

ConfigKeys LogSnrScheduler::solver_keys() {
  return {{"solver_order", 2, {1, 2, 3}},
          {"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
          {"thresholding", false, {false}},
          {"dynamic_thresholding_ratio", 0.995},
          {"sample_max_value", 1.0},
          {"lower_order_final", true},
          {"use_flow_sigmas", false, {false}},
          {"flow_shift", 1.0},
          {"final_sigmas_type", "zero", {"zero", "sigma_min"}},
          {"rescale_betas_zero_snr", false},
          {"use_dynamic_shifting", false, {false}}};
}

LogSnrScheduler::LogSnrScheduler(const char* class_name, const Json& config, const ConfigKeys& keys)
    : Scheduler(class_name, config, NoiseSchedule(beta_options(config, keys))),
      alphas_cumprod_(finite_alphas_cumprod(noise_schedule(), own_flag(config, keys, "rescale_betas_zero_snr"))),
      table_(alphas_cumprod_),
      prediction_type_(prediction_type_of(config)),
      curve_(sigma_curve(config, keys, class_name)) {}

LogSnrScheduler::Level LogSnrScheduler::level_at(std::int64_t index) const {
  const torch::Tensor ratio = sigmas_[index];
  const torch::Tensor alpha = 1 / (ratio.square() + 1).sqrt();
  const torch::Tensor sigma = ratio * alpha;
  return {alpha, sigma, alpha.log() - sigma.log()};
}

std::vector<double> LogSnrScheduler::run_timesteps(std::int64_t limit, std::int64_t num_inference_steps) const {
  if (!given_timesteps().empty()) return given_timesteps();
  const std::string spacing = config()["timestep_spacing"];
  if (spacing == "trailing") {
    return trailing_timesteps(
        limit, static_cast<double>(noise_schedule().num_train_timesteps()) / static_cast<double>(num_inference_steps));
  }
  std::vector<double> timesteps =
      spaced_timesteps(spacing, limit, num_inference_steps + 1, config()["steps_offset"].get<std::int64_t>());
  timesteps.pop_back();
  round_all(timesteps);
  return timesteps;
}

LogSnrScheduler::RunLevels LogSnrScheduler::run_levels(std::int64_t num_inference_steps) const {
  RunLevels levels{run_timesteps(noise_schedule().num_train_timesteps(), num_inference_steps), {}, table_.first()};
  levels.sigmas = table_.interpolate(levels.timesteps);
  if (curve_ != SigmaCurve::kNone) {
    levels.sigmas = curve_sigmas(curve_, table_.first(), table_.last(), num_inference_steps, config());
    levels.timesteps = table_.timesteps_of(levels.sigmas);
    if (curve_ == SigmaCurve::kKarras) round_all(levels.timesteps);
    levels.lowest = levels.sigmas.back();
  }
  if (config()["solver_order"].get<std::int64_t>() > 1) require_distinct_sigmas(class_name(), levels.sigmas);
  return levels;
}

void LogSnrScheduler::begin(const std::vector<double>& timesteps, const std::vector<double>& sigmas) {
  timesteps_ = integer_tensor(timesteps);
  sigmas_ = float_tensor(sigmas);
  step_index_ = -1;
}

std::int64_t LogSnrScheduler::step_index(double t) {
  if (step_index_ < 0) step_index_ = first_index(t);
  TORCH_CHECK(step_index_ < timesteps_.size(0), class_name(), ": step after the end of the run");
  return step_index_;
}

torch::Tensor LogSnrScheduler::add_noise(const torch::Tensor& x0, const torch::Tensor& noise,
                                         const torch::Tensor& timesteps) const {
  TORCH_CHECK(sigmas_.defined(), class_name(), ": add_noise before set_timesteps");
  const torch::Tensor wanted = timesteps.to(torch::kCPU, torch::kInt64).flatten();
  const bool is_at_step = has_begin_index() && step_index_ >= 0;  // within the run, as diffusers has it
  const auto level_of = [&](std::int64_t i) {
    return level_at(is_at_step ? step_index_ : first_index(wanted[i].item<double>()));
  };
  if (wanted.numel() == 1) {  // for the whole batch
    const Level level = level_of(0);
    return (level.alpha * x0 + level.sigma * noise).to(x0.scalar_type());
  }
  TORCH_CHECK(wanted.numel() == x0.size(0), class_name(), ": ", wanted.numel(), " timesteps for a batch of ",
              x0.size(0));
  std::vector<torch::Tensor> samples;
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    const Level level = level_of(i);
    samples.push_back(level.alpha * x0[i] + level.sigma * noise[i]);
  }
  return torch::stack(samples).to(x0.scalar_type());
}

}  // namespace sdtune::model
