#include "model/schedule/lcm.h"

#include <cmath>

#include "model/base/error.h"
#include "model/schedule/sigma_spacing.h"
#include "model/schedule/timestep_spacing.h"

namespace sdtune::model {
namespace {

constexpr double kSigmaData = 0.5;  // the standard deviation of the data, in the boundary condition

}  // namespace

ConfigKeys LcmScheduler::keys() {
  constexpr double kMaxSteps = 100000;
  constexpr double kMaxScaling = 1e6;
  return join_keys({beta_keys(0.00085, 0.012, "scaled_linear"),
                    spacing_keys("leading"),  // of no effect in diffusers' class either
                    clipping_keys(false),
                    {{"original_inference_steps", 50, {}, 1, kMaxSteps},
                     {"set_alpha_to_one", true},  // likewise: no step ends below timestep 0
                     {"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}},
                     {"timestep_scaling", 10.0, {}, 0, kMaxScaling},
                     {"rescale_betas_zero_snr", false}}});
}

LcmScheduler::LcmScheduler(const Json& config)
    : Scheduler(kClassName, config, NoiseSchedule(beta_options(config, keys()))),
      prediction_type_(prediction_type_of(config)),
      original_steps_(config["original_inference_steps"]),
      timestep_scaling_(config["timestep_scaling"]),
      clip_range_(clip_range(config)) {}

void LcmScheduler::start_run(std::int64_t num_inference_steps) {
  if (!given_timesteps().empty()) {
    timesteps_ = integer_tensor(given_timesteps());
    return;
  }
  const std::int64_t train_timesteps = noise_schedule().num_train_timesteps();
  if (original_steps_ > train_timesteps) {
    throw ConfigError("original_inference_steps", "is out of range (got " + std::to_string(original_steps_) +
                                                      "; allowed: 1.." + std::to_string(train_timesteps) + ")");
  }
  if (num_inference_steps > original_steps_) {
    throw ConfigError("num_inference_steps",
                      "is more than LCMScheduler's original_inference_steps (got " +
                          std::to_string(num_inference_steps) + "; allowed: 1.." + std::to_string(original_steps_) +
                          ")",
                      "4 to 8 steps are what such models are made for");
  }
  const std::int64_t ratio = train_timesteps / original_steps_;
  const double stride = static_cast<double>(original_steps_) / static_cast<double>(num_inference_steps);
  std::vector<double> timesteps;
  for (std::int64_t i = 0; i < num_inference_steps; ++i) {
    const auto skipped = static_cast<std::int64_t>(std::floor(static_cast<double>(i) * stride));
    timesteps.push_back(static_cast<double>((original_steps_ - skipped) * ratio - 1));
  }
  timesteps_ = integer_tensor(timesteps);
}

torch::Tensor LcmScheduler::advance(const torch::Tensor& model_output, double t, const torch::Tensor& sample,
                                    NoiseSource& noise, const StepOptions&) {
  const torch::Tensor& alphas_cumprod = noise_schedule().alphas_cumprod;
  const std::int64_t next = index_of_timestep(timesteps_, t) + 1;
  const torch::Tensor alpha_prod = alphas_cumprod[static_cast<std::int64_t>(t)];
  const torch::Tensor x0 =
      predicted_x0(prediction_type_, model_output, sample, {alpha_prod.sqrt(), (1 - alpha_prod).sqrt()})
          .clamp(-clip_range_, clip_range_);
  // The boundary condition: at timestep 0 the sample is its own x0.
  const double scaled = t * timestep_scaling_;
  const double skip = kSigmaData * kSigmaData / (scaled * scaled + kSigmaData * kSigmaData);
  const double out = scaled / std::sqrt(scaled * scaled + kSigmaData * kSigmaData);
  const torch::Tensor denoised = out * x0 + skip * sample;
  if (next == timesteps_.size(0)) return denoised;

  const torch::Tensor alpha_prod_next = alphas_cumprod[timesteps_[next].item<std::int64_t>()];
  const torch::Tensor draw = noise.draw(model_output.sizes(), model_output.scalar_type(), model_output.device());
  return alpha_prod_next.sqrt() * denoised + (1 - alpha_prod_next).sqrt() * draw;
}

}  // namespace sdtune::model
