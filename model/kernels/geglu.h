// The gated activation of transformer blocks: Shazeer, "GLU variants improve transformer" (2020).
#pragma once

#include <torch/types.h>

namespace sdtune::model {

// x [..., 2 W] -> x[..., :W] * gelu(x[..., W:]) with the exact GELU, x * Phi(x). On the CPU in float32 and bfloat16,
// and on a GPU also in float16, one fused kernel that keeps only x for backward; elsewhere LibTorch's operations.
torch::Tensor geglu(const torch::Tensor& x);

}  // namespace sdtune::model
