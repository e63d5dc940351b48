// Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023): every number moves by the rate, in
// the direction of the sign of a mean of gradients; one moment instead of AdamW's two. The paper's advice: a rate 3 to
// 10 times lower than AdamW's, and a weight decay as many times higher.
#pragma once

#include <torch/types.h>

#include <vector>

#include "train/optim/optimizer.h"

namespace sdtune::train {

class Lion : public Optimizer {
 public:
  // Takes lion_beta1 and lion_beta2 of the options, and adam_weight_decay (decoupled).
  // on_device: with no number read by the host, which on a CPU costs more and on a GPU does not wait.
  Lion(std::vector<TrainedParameter> parameters, const OptimOptions& options, bool on_device);

  // exp_avg of each parameter, float32.
  NamedStates states() const override;

 private:
  void update(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates) override;

  void update_on_device(const torch::Tensor& rates, const torch::Tensor& gradient_factor, torch::Tensor& updates);

  OptimOptions options_;
  bool on_device_;
  std::vector<torch::Tensor> means_;
};

}  // namespace sdtune::train
