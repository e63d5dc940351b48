// The low-rank addition to a layer (Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022):
// y = layer(x) + scale up(down(x)). A branch is attached to the layer and is none of its parameters, so that names,
// state and loading of the model stay what they are.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

namespace sdtune::model {

struct LowRankBranch {
  std::string lora;          // which one it belongs to: a layer may carry several
  torch::Tensor down;        // of a linear layer [r, in], of a convolution [r, in, k, k]
  torch::Tensor up;          // [out, r], [out, r, 1, 1]
  torch::Tensor delta = {};  // in place of the two, of the weight's shape: what is no product of two (LoHa, LoKr)
  double scale = 1.0;        // weight x alpha / r; 0 leaves the branch out
  std::function<torch::Tensor(const torch::Tensor&)> dropout = {};  // of what `down` sees, while training; empty: none
};

// What layers with branches have in common.
class LowRankLayer {
 public:
  virtual ~LowRankLayer() = default;

  std::vector<LowRankBranch> branches;

  virtual torch::Tensor layer_weight() const = 0;  // [out, in] or [out, in, k, k]
  // [r, in] or [r, in, k, k], and [out, r] or [out, r, 1, 1]: what a branch of rank r has to be.
  std::vector<int64_t> down_shape(int64_t rank) const;
  std::vector<int64_t> up_shape(int64_t rank) const;
  // up x down (or delta) in the weight's shape, float32, without the scale: what merging adds to the weight.
  static torch::Tensor product(const LowRankBranch& branch);

 protected:
  // Adds to `y` in place what the branches make of x; `apply(x, weight, is_down)` is the layer's own operation.
  using Apply = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& weight, bool is_down)>;
  torch::Tensor with_branches(torch::Tensor y, const torch::Tensor& x, const Apply& apply) const;
};

}  // namespace sdtune::model
