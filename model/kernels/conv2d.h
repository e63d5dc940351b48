// 2-D convolution that picks its way by the shape.
#pragma once

#include <torch/types.h>

namespace sdtune::model {

struct ConvShape {
  int64_t stride = 1;
  int64_t padding = 0;
};

// x [B, in, H, W] with weight [out, in, k, k] and bias [out] or undefined -> [B, out, H', W'] in x's memory format.
//
// On the CPU in float32 and channels_last, two other cases go by matrix products on the weight as it lies in memory:
// kernel size 1, and maps with few pixels for the weight's size (SD 1.5 from 16x16 px on). For those LibTorch first
// re-orders the weight into blocks, on every call, which takes several times as long as the products: 85 instead of 25
// ms for 1280 -> 1280 channels at 16x16 px. In bfloat16 the same of maps with few pixels, the
// gradient of the input by pair_gradient.h; and of somewhat larger ones the gradient of the weight alone.
// Not where the choice of the processor's kind says `library` (core/cpu_implementation.h), and not within a
// PackedWeightsScope, whose weights are in blocks already (packed_weights.h); patch_conv2d.h has them. 3 x 3
// convolutions go by Winograd's minimal filtering (winograd_conv2d.h) unless the kind's choice says `direct`. bfloat16
// without AVX-512 is computed in float32 (float32_compute.h). Everything else is LibTorch's.
torch::Tensor conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const ConvShape& shape);

}  // namespace sdtune::model
