// The norm of the whole gradient, and the factor that clips it: torch.nn.utils.clip_grad_norm_ without its pass over
// memory, because AdamW multiplies by the factor while it reads the gradient.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "train/optim/optimizer_shard.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

struct ClippedGradient {
  torch::Tensor norm;  // scalar float32: over all parameters, of the gradient without loss scale, before clipping
  torch::Tensor
      factor;         // scalar float32: min(1, max_norm / (norm + 1e-6)) / loss_scale; not finite where the norm is not
  GradientSums sums;  // of a shard alone: what the norm was made of
};

// Over all parameters together. loss_scale: scalar float32 on the device (1 without fp16), by which the gradients are
// too large. On the CPU the sum is in double and in a fixed order, so it does not depend on the number of threads;
// on a GPU our kernel does the same there, and nothing waits.
// With a `shard` only the gradients of its own parameters are read, and every rank gets the bits that one rank with all
// gradients would.
ClippedGradient clip_gradient(const std::vector<TrainedParameter>& parameters, const torch::Tensor& loss_scale,
                              double max_norm, const OptimizerShard* shard = nullptr);

// The name of the first parameter whose gradient holds NaN or infinity, or "". Reads the device.
std::string first_non_finite(const std::vector<TrainedParameter>& parameters);
// The same of all ranks' gradients, by what their norm was made of.
std::string first_non_finite(const std::vector<TrainedParameter>& parameters, const GradientSums& sums);

}  // namespace sdtune::train
