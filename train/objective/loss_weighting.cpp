#include "train/objective/loss_weighting.h"

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

torch::Tensor mean_of_samples(const torch::Tensor& errors) {
  // On a CPU always added in the order of the shape: the sum's last bits depend on the order.
  const bool in_memory_order = !errors.is_cpu() && errors.is_contiguous(torch::MemoryFormat::ChannelsLast);
  return (in_memory_order ? errors.permute({0, 2, 3, 1}) : errors).flatten(1).mean(1);
}

torch::Tensor masked_mean(const torch::Tensor& errors, const torch::Tensor& mask, const ObjectiveOptions& options) {
  const torch::Tensor weights = mask.clamp_min(options.unmasked_weight);
  const torch::Tensor means = mean_of_samples(errors * weights);
  if (!options.normalize_masked_area_loss) return means;
  // All of an image may be outside the mask, and weigh nothing.
  return means / mean_of_samples(weights).clamp_min(1e-6);
}

}  // namespace sdtune::train
