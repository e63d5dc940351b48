// What a UNet's output means. The only place that converts between epsilon, v and x0.
#pragma once

#include <torch/types.h>

#include <string>

#include "model/base/json.h"
#include "model/schedule/noise_schedule.h"

namespace sdtune::model {

enum class PredictionType {
  kEpsilon,      // the noise
  kVPrediction,  // alpha * noise - sigma * x0 (Salimans & Ho, "Progressive distillation", 2022)
  kSample,       // x0 itself
};

// The key `prediction_type` of any scheduler's config ("epsilon" where absent), leaving its other keys alone. Throws
// WeightError naming `where` and what is allowed.
PredictionType prediction_type_of(const Json& scheduler_config, const std::string& where = "scheduler_config.json");

// x_t = alpha * x0 + sigma * epsilon. The coefficients are scalars (0-dim) or broadcast against x_t.
struct NoiseLevel {
  torch::Tensor alpha;
  torch::Tensor sigma;
};

// The model's output at x_t as x0 and as epsilon.
torch::Tensor predicted_x0(PredictionType type, const torch::Tensor& output, const torch::Tensor& x_t,
                           const NoiseLevel& level);
torch::Tensor predicted_epsilon(PredictionType type, const torch::Tensor& output, const torch::Tensor& x_t,
                                const NoiseLevel& level);
// x0 of a sample x0 + sigma * epsilon, whose signal is not scaled (the form of the Euler schedulers).
torch::Tensor predicted_x0_unscaled(PredictionType type, const torch::Tensor& output, const torch::Tensor& sample,
                                    const torch::Tensor& sigma);
// epsilon of a given x0.
torch::Tensor epsilon_from_x0(const torch::Tensor& x0, const torch::Tensor& x_t, const NoiseLevel& level);
// alpha * noise - sigma * x0.
torch::Tensor velocity(const torch::Tensor& x0, const torch::Tensor& noise, const NoiseLevel& level);

// What the UNet is trained to give: [B, ...] for x0 and noise [B, ...], timesteps [B].
torch::Tensor training_target(PredictionType type, const NoiseSchedule& schedule, const torch::Tensor& x0,
                              const torch::Tensor& noise, const torch::Tensor& timesteps);

}  // namespace sdtune::model
