// GEGLU by our CUDA kernels; geglu.h chooses between this and what else there is.
#pragma once

#include <torch/types.h>

#include "model/core/cuda_table.h"

namespace sdtune::model {

// x [..., 2 W] -> [..., W], differentiable once.
torch::Tensor geglu_by_kernel(const CudaTable& kernels, const torch::Tensor& x);

// LibTorch's operators for the same.
torch::Tensor geglu_by_library(const torch::Tensor& x);

// The kernels, where they may be used for this tensor: it has a dtype and size that they take, and they have proved
// themselves on its device. Else null.
const CudaTable* geglu_kernels(const torch::Tensor& x);

}  // namespace sdtune::model
