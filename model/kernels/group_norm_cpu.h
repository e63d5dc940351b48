// The arithmetic of the fused group norm on the CPU; group_norm.h makes a differentiable operation of it.
#pragma once

#include <torch/types.h>

#include "model/kernels/group_norm.h"

namespace sdtune::model {

// What forward finds out and backward needs again, all small.
struct GroupNormStatistics {
  torch::Tensor sum;           // float64 [B, C]: of x over the pixels
  torch::Tensor mean, rstd;    // float64 [B, groups]: mean and 1 / deviation of x + offset
  torch::Tensor scale, shift;  // float32 [B, C]: z = scale * x + shift, then the activation
};

// y = act(group_norm(x + offset)). x and y [B, C, H, W], float32 or bfloat16, both contiguous or both channels_last.
GroupNormStatistics group_norm_cpu(const torch::Tensor& x, const torch::Tensor& y, const GroupNormArguments& arguments);

// Gradients of the parameters are float32.
struct GroupNormGradients {
  torch::Tensor weight, bias;  // [C]
  torch::Tensor offset;        // [B, C]
};

// From dy, in x's layout, to dx (written) and the parameters' gradients.
GroupNormGradients group_norm_cpu_backward(const torch::Tensor& x, const torch::Tensor& dy, const torch::Tensor& dx,
                                           const GroupNormArguments& arguments, const GroupNormStatistics& statistics);

}  // namespace sdtune::model
