#include "model/schedule/prediction.h"

#include "model/schedule/scheduler_config.h"

namespace sdtune::model {

PredictionType prediction_type_of(const Json& scheduler_config, const std::string& where) {
  const ConfigKeys keys = {{"prediction_type", "epsilon", {"epsilon", "v_prediction", "sample"}}};
  const std::string name = resolve_config("", keys, scheduler_config, where)["prediction_type"];
  if (name == "epsilon") return PredictionType::kEpsilon;
  return name == "sample" ? PredictionType::kSample : PredictionType::kVPrediction;
}

torch::Tensor predicted_x0(PredictionType type, const torch::Tensor& output, const torch::Tensor& x_t,
                           const NoiseLevel& level) {
  switch (type) {
    case PredictionType::kEpsilon:
      return (x_t - level.sigma * output) / level.alpha;
    case PredictionType::kVPrediction:
      return level.alpha * x_t - level.sigma * output;
    case PredictionType::kSample:
      break;
  }
  return output;
}

torch::Tensor predicted_epsilon(PredictionType type, const torch::Tensor& output, const torch::Tensor& x_t,
                                const NoiseLevel& level) {
  switch (type) {
    case PredictionType::kSample:
      return epsilon_from_x0(output, x_t, level);
    case PredictionType::kVPrediction:
      return level.alpha * output + level.sigma * x_t;
    case PredictionType::kEpsilon:
      break;
  }
  return output;
}

torch::Tensor predicted_x0_unscaled(PredictionType type, const torch::Tensor& output, const torch::Tensor& sample,
                                    const torch::Tensor& sigma) {
  switch (type) {
    case PredictionType::kEpsilon:
      return sample - sigma * output;
    case PredictionType::kVPrediction: {
      const torch::Tensor norm = sigma * sigma + 1;
      return output * (-sigma / norm.sqrt()) + sample / norm;
    }
    case PredictionType::kSample:
      break;
  }
  return output;
}

torch::Tensor epsilon_from_x0(const torch::Tensor& x0, const torch::Tensor& x_t, const NoiseLevel& level) {
  return (x_t - level.alpha * x0) / level.sigma;
}

torch::Tensor velocity(const torch::Tensor& x0, const torch::Tensor& noise, const NoiseLevel& level) {
  return level.alpha * noise - level.sigma * x0;
}

torch::Tensor training_target(PredictionType type, const NoiseSchedule& schedule, const torch::Tensor& x0,
                              const torch::Tensor& noise, const torch::Tensor& timesteps) {
  switch (type) {
    case PredictionType::kVPrediction:
      return schedule.velocity(x0, noise, timesteps);
    case PredictionType::kSample:
      return x0;
    case PredictionType::kEpsilon:
      break;
  }
  return noise;
}

}  // namespace sdtune::model
