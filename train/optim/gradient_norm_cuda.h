// The norm of the whole gradient by our CUDA kernels.
#pragma once

#include <torch/types.h>

#include <vector>

#include "train/optim/trained_parameter.h"

namespace sdtune::train {

// LibTorch's operators: scalar float32 on the device.
torch::Tensor gradient_norm_by_library(const std::vector<TrainedParameter>& parameters);

// By our kernels, where they may be used: scalar float32 on the device, the same bits in each run, not finite exactly
// where a gradient is not. Elsewhere by LibTorch's operators. The list of gradients goes to the device once and again
// only when the memory of one has changed; nothing waits otherwise.
torch::Tensor gradient_norm_on_device(const std::vector<TrainedParameter>& parameters);

}  // namespace sdtune::train
