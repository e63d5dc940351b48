// AdamW as its paper states it, in double and one parameter at a time: what the optimizers of a run are compared with.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "train/config/optim_options.h"

namespace sdtune::train {

// Loshchilov & Hutter, "Decoupled weight decay regularization" (2019), algorithm 2, with torch.optim.AdamW's order:
// decay first. The moments are float64 where `in_double`, else float32 (a reference of full size has to fit in memory).
class AdamWStatement {
 public:
  AdamWStatement(const OptimOptions& options, bool in_double) : options_(options), in_double_(in_double) {}

  // One update of `weights` in place by gradients of the same shapes, already clipped; the t-th call is update t.
  void update(const std::vector<torch::Tensor>& weights, const std::vector<torch::Tensor>& gradients);

 private:
  OptimOptions options_;
  bool in_double_;
  std::int64_t updates_ = 0;
  std::vector<torch::Tensor> means_, squares_;
};

// What clipping multiplies gradients by: torch.nn.utils.clip_grad_norm_'s min(1, max_norm / (norm + 1e-6)).
double clip_factor(double norm, double max_norm);

}  // namespace sdtune::train
