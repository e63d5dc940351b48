#include "train/objective/direct_consistency.h"

#include "model/core/check.h"

namespace sdtune::train {

torch::Tensor consistency_weights(const torch::Tensor& losses, const torch::Tensor& base_losses, double beta) {
  model::check_shape(base_losses, losses.sizes(), "losses of the base");
  return 2 * torch::sigmoid(beta * (losses.detach() - base_losses));
}

}  // namespace sdtune::train
