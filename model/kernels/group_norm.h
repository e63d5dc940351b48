// Group norm with SiLU and an added offset a channel, as one differentiable operation.
#pragma once

#include <torch/types.h>

namespace sdtune::model {

struct GroupNormArguments {
  torch::Tensor weight;                    // [C]
  torch::Tensor bias;                      // [C]
  torch::Tensor offset = torch::Tensor();  // [B, C], added to x before the norm; or undefined
  int64_t groups = 1;
  double eps = 1e-5;
  bool silu = false;
};

// act(group_norm(x + offset)) for x [B, C, H, W]; the result has x's dtype and memory format. On the CPU in float32 and
// bfloat16 one fused kernel that keeps only x for backward, with sums in double, whose result does not depend on the
// number of threads; on a GPU kernels of our own in these and float16, whose bits are the same in each run; elsewhere
// LibTorch's operators, with statistics in float32.
torch::Tensor group_norm(const torch::Tensor& x, const GroupNormArguments& arguments);

// The same bits for an x that is read nowhere else: written over it where the CPU's kernel runs and no gradient is
// asked for, which spares a map.
torch::Tensor group_norm_over(torch::Tensor x, const GroupNormArguments& arguments);

}  // namespace sdtune::model
