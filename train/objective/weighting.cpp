#include "train/objective/weighting.h"

namespace sdtune::train {

torch::Tensor min_snr_weights(model::PredictionType type, const torch::Tensor& snr, double gamma) {
  const torch::Tensor ratio = snr.to(torch::kFloat32);
  switch (type) {
    case model::PredictionType::kEpsilon:
      return (gamma / ratio).clamp_max(1.0);  // = min(snr, gamma) / snr, and its limit 1 where snr is 0
    case model::PredictionType::kVPrediction:
      return ratio.clamp_max(gamma) / (ratio + 1.0);
    case model::PredictionType::kSample:
      break;
  }
  return ratio.clamp_max(gamma);
}

}  // namespace sdtune::train
