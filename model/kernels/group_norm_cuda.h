// Group norm by our CUDA kernels; group_norm.h chooses between this and what else there is.
#pragma once

#include <torch/types.h>

#include "model/core/cuda_table.h"
#include "model/kernels/group_norm.h"

namespace sdtune::model {

// Whether the kernels take these tensors: one dtype of three, on one device, of a size that fits 32-bit indices.
bool fits_group_norm_kernel(const torch::Tensor& x, const GroupNormArguments& arguments);

// act(group_norm(x + offset)) [B, C, H, W], differentiable once.
torch::Tensor group_norm_by_kernel(const CudaTable& kernels, const torch::Tensor& x,
                                   const GroupNormArguments& arguments);

// LibTorch's operators for the same.
torch::Tensor group_norm_by_library(const torch::Tensor& x, const GroupNormArguments& arguments);

// The kernels, where they may be used for these tensors: they fit, and have proved themselves on this device. Else
// null.
const CudaTable* group_norm_kernels(const torch::Tensor& x, const GroupNormArguments& arguments);

}  // namespace sdtune::model
