// 2-D convolutions as products of patches (patches.h) with the weight as it lies in memory, in some of the three
// passes: the result, and the gradients of the input and of the weight.
#pragma once

#include <torch/types.h>

#include <optional>

#include "model/kernels/patches.h"

namespace sdtune::model {

// Which passes of a convolution multiply patches; the others are LibTorch's.
struct PatchPasses {
  bool result;
  bool input, weight;  // the gradients
};

// Those that are faster so, of a channels_last map x [B, in, H, W] of float32 or bfloat16 with weight [out, in, k, k].
// Unset: LibTorch takes the whole convolution.
std::optional<PatchPasses> passes_by_patches(const torch::Tensor& x, const torch::Tensor& weight,
                                             const PatchShape& shape);

// As torch::conv2d with bias [out] or undefined -> [B, out, H', W'] in channels_last; differentiable.
torch::Tensor patch_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                           const PatchShape& shape, const PatchPasses& passes);

// The gradient of weight [out, in, k, k] alone, for dy [B, out, H', W'] in channels_last: by patches or LibTorch's,
// whichever is faster.
torch::Tensor weight_gradient_of_conv2d(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& weight,
                                        const PatchShape& shape);

}  // namespace sdtune::model
