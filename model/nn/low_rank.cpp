#include "model/nn/low_rank.h"

namespace sdtune::model {

std::vector<int64_t> LowRankLayer::down_shape(int64_t rank) const {
  std::vector<int64_t> shape = layer_weight().sizes().vec();
  shape[0] = rank;
  return shape;
}

std::vector<int64_t> LowRankLayer::up_shape(int64_t rank) const {
  const torch::Tensor weight = layer_weight();
  if (weight.dim() == 2) return {weight.size(0), rank};
  return {weight.size(0), rank, 1, 1};
}

torch::Tensor LowRankLayer::product(const LowRankBranch& branch) {
  if (branch.delta.defined()) return branch.delta.detach().to(torch::kFloat32);
  const torch::Tensor down = branch.down.detach().to(torch::kFloat32), up = branch.up.detach().to(torch::kFloat32);
  std::vector<int64_t> shape = down.sizes().vec();
  shape[0] = up.size(0);
  return torch::mm(up.flatten(1), down.flatten(1)).view(shape);
}

torch::Tensor LowRankLayer::with_branches(torch::Tensor y, const torch::Tensor& x, const Apply& apply) const {
  for (const LowRankBranch& branch : branches) {
    if (branch.scale == 0) continue;
    const torch::Tensor seen = branch.dropout ? branch.dropout(x) : x;
    if (branch.delta.defined()) {
      y.add_(apply(seen, branch.delta.to(x.options()), true), branch.scale);
      continue;
    }
    // The model may have moved since the branch was attached; else these are the branch's own.
    const torch::Tensor down = branch.down.to(x.options()), up = branch.up.to(x.options());
    // In place: neither a product nor a convolution needs its result in backward.
    y.add_(apply(apply(seen, down, true), up, false), branch.scale);
  }
  return y;
}

}  // namespace sdtune::model
