// 3 x 3 convolutions by Winograd's minimal filtering (winograd_tiles.h) on a CPU: a quarter of the products, in
// float32. Where a CPU has instructions for bfloat16, products of it without transforms take half the time, so that
// large maps gain less: 512 channels of 128 x 128 px take 59 ms instead of 76 with 2 threads on an EPYC of family 26,
// model 2. Small maps gain where kernels are transformed by panels: SD 1.5's UNet takes 0.96 of its time at 512 px on
// one of family 25, model 17, its steps with guidance 0.92, a step of its training 0.93. Each result is
// rounded once.
#pragma once

#include <torch/types.h>

#include "model/kernels/conv2d.h"

namespace sdtune::model {

// Whether winograd_conv2d takes these and is faster: on a CPU with AVX2, float32 or bfloat16, x in channels_last,
// kernel size 3, stride 1, padding 1, channels a multiple of 16, enough pixels and channels, and where kernels are not
// transformed by panels (winograd_panels.h) at most two channels that come out for each pixel.
bool can_convolve_by_winograd(const torch::Tensor& x, const torch::Tensor& weight, const ConvShape& shape);

// As torch::conv2d with padding 1 for x [B, in, H, W], weight [out, in, 3, 3] and bias [out] or undefined
// -> [B, out, H, W] in channels_last; differentiable, in bfloat16 the weight without transforms (patch_conv2d.h). The
// mean error in float32 is about twice that of a convolution without transforms: 1e-6 of the result.
torch::Tensor winograd_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

// What winograd_conv2d makes of a weight at every call: [out, in, 3, 3] -> [36, out, in], four times as large.
torch::Tensor winograd_weight(const torch::Tensor& weight);
// The same convolution with a weight that was transformed before; without gradients.
torch::Tensor winograd_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& transformed);

}  // namespace sdtune::model
