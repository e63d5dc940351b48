// Weights as they are computed with, while the optimizer keeps float32 masters.
#pragma once

#include <torch/types.h>

namespace sdtune::train {

// Casts a parameter in place, and gives convolution kernels the memory order that `device` is fastest in.
void to_compute_dtype(const torch::Tensor& weight, torch::Dtype dtype, torch::Device device);

}  // namespace sdtune::train
