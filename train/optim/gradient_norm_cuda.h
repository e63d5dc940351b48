// The norm of the whole gradient by our CUDA kernels.
#pragma once

#include <torch/types.h>

#include <vector>

#include "train/optim/optimizer_shard.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

// LibTorch's operators: scalar float32 on the device.
torch::Tensor gradient_norm_by_library(const std::vector<TrainedParameter>& parameters);

// By our kernels, where they may be used: scalar float32 on the device, the same bits in each run, not finite exactly
// where a gradient is not. Elsewhere by LibTorch's operators. The list of gradients goes to the device once and again
// only when the memory of one has changed; nothing waits otherwise.
torch::Tensor gradient_norm_on_device(const std::vector<TrainedParameter>& parameters);

// The same where each rank has the gradients of its own parameters alone: with the bits that one rank with all of them
// would get. Fills in `sums`.
torch::Tensor gradient_norm_of_shards(const std::vector<TrainedParameter>& parameters, const OptimizerShard& shard,
                                      GradientSums& sums);

}  // namespace sdtune::train
