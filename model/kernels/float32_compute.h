// Linear layers and convolutions in bfloat16 on a CPU that has no instructions for it: computed in float32, and rounded
// to bfloat16 once, as processors with such instructions do (products in bfloat16, sums in float32).
#pragma once

#include <torch/types.h>

#include "model/kernels/conv2d.h"

namespace sdtune::model {

// Whether LibTorch has only its plain loops for a bfloat16 tensor like `x` here: on a CPU without AVX-512, of which
// those that were tried have no instructions for bfloat16. 1024 x 1280 by 1280 x 1280 took 6486 ms so and 75 ms in
// float32 on an EPYC of family 25, model 1; 320 -> 320 channels of 32 x 32 px 4338 and 31 ms.
bool computes_in_float32(const torch::Tensor& x);

// As torch::linear and torch::conv2d, differentiable, of bfloat16 tensors; what is kept for the backward pass is
// bfloat16. Each call converts the weight, so a layer needs memory for its float32 copy while it runs.
// x [..., in], weight [out, in], bias [out] or undefined -> [..., out]
torch::Tensor float32_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {});
// x [B, in, H, W], weight [out, in, k, k], bias [out] or undefined -> [B, out, H', W'] in x's memory format
torch::Tensor float32_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             const ConvShape& shape);

}  // namespace sdtune::model
