#include "train/objective/masked_mean.h"

namespace sdtune::train {

torch::Tensor masked_mean(const torch::Tensor& errors, const torch::Tensor& mask, const ObjectiveOptions& options) {
  const torch::Tensor weights = mask.clamp_min(options.unmasked_weight);
  const torch::Tensor means = (errors * weights).flatten(1).mean(1);
  if (!options.normalize_masked_area_loss) return means;
  // All of a picture may be outside the mask, and weigh nothing.
  return means / weights.flatten(1).mean(1).clamp_min(1e-6);
}

}  // namespace sdtune::train
