#include "train/objective/prior_preservation.h"

namespace sdtune::train {

LossShare share_of_loss(const torch::Tensor& sample_losses, std::int64_t instances, std::int64_t effective_batch) {
  const std::int64_t samples = sample_losses.size(0);
  TORCH_CHECK(instances >= 0 && instances <= samples, "share_of_loss: ", instances, " photos of ", samples, " samples");
  const auto count = static_cast<double>(effective_batch);
  return {sample_losses.narrow(0, 0, instances).sum() / count,
          sample_losses.narrow(0, instances, samples - instances).sum() / count};
}

}  // namespace sdtune::train
