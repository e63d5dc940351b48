// A 3x3 convolution of a map that nearest neighbour has doubled, without the doubled map: each of the four places that
// a pixel becomes sees 2 x 2 pixels, with sums of the kernel's weights. 16 products a pixel in place of 36. The idea is
// the sub-pixel convolution of Shi et al., "Real-time single image and video super-resolution" (CVPR 2016), backwards.
#pragma once

#include <torch/types.h>

namespace sdtune::model {

// Whether upsampled_conv2d takes these and is faster: on a CPU, float32 or bfloat16, channels_last, no gradient asked
// for, and enough pixels to be worth the sums of weights.
bool can_convolve_upsampled(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

// conv2d(upsample_nearest2d(x, 2), weight, bias, padding 1) for x [B, in, H, W], weight [out, in, 3, 3], bias [out] ->
// [B, out, 2 H, 2 W], channels_last. Sums of weights are rounded once to the weight's dtype.
torch::Tensor upsampled_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace sdtune::model
