// A step's numbers where they are: for optimizers that are written in LibTorch's operators and must not wait for a GPU.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "train/optim/trained_parameter.h"

namespace sdtune::train {

// Nothing is read. A step that is skipped is one whose gradients, rates and shares of new values are all 0.
class DeviceStep {
 public:
  // rates: [groups] float64; gradient_factor: scalar float32, not finite for a step to be skipped.
  DeviceStep(const torch::Tensor& rates, const torch::Tensor& gradient_factor);

  // Scalar bool: the step counts.
  const torch::Tensor& counts() const { return counts_; }
  // Scalar float32: the rate of a group; [groups] float64: of all.
  torch::Tensor rate(std::int64_t group) const { return rates_.select(0, group).to(torch::kFloat32); }
  const torch::Tensor& rates() const { return rates_; }
  // The gradient times the factor, float32.
  torch::Tensor gradient(const TrainedParameter& parameter) const;
  // Scalar float32: `share` of what is new, in a mean that keeps 1 - share of what it was.
  torch::Tensor share(double share) const { return counts_.to(torch::kFloat32) * share; }

 private:
  torch::Tensor counts_;
  torch::Tensor rates_;
  torch::Tensor factor_;
};

}  // namespace sdtune::train
