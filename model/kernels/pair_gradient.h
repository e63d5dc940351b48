// The gradient of a convolution's input in bfloat16 by AVX-512's products of pairs, with sums in float32.
#pragma once

#include <torch/types.h>

#include "model/kernels/patches.h"

namespace sdtune::model {

// On CPUs that have such instructions, for an even number of channels that come out.
bool can_multiply_gradient_by_pairs(const torch::Tensor& weight);

// dy [B * H' * W', out], weight [out, in, k, k], both bfloat16 and contiguous; `like` gives the shape of the input ->
// its gradient [B, in, H, W], channels_last, rounded once. The weight is read as it lies in memory, each number once.
// The bits depend neither on the batch nor on the number of threads.
torch::Tensor input_gradient_by_pairs(const torch::Tensor& dy, const torch::Tensor& weight, const torch::Tensor& like,
                                      const PatchShape& shape);

}  // namespace sdtune::model
