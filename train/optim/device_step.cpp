#include "train/optim/device_step.h"

namespace sdtune::train {

DeviceStep::DeviceStep(const torch::Tensor& rates, const torch::Tensor& gradient_factor)
    : counts_(torch::isfinite(gradient_factor)), rates_(rates * counts_), factor_(gradient_factor) {}

torch::Tensor DeviceStep::gradient(const TrainedParameter& parameter) const {
  const torch::Tensor scaled = parameter.gradient.to(torch::kFloat32) * factor_;
  return torch::where(counts_, scaled, 0.0);  // 0 times infinity would be no number
}

}  // namespace sdtune::train
