#include "train/data/tensor_blocks.h"

#include <ATen/ops/empty.h>

namespace sdtune::train {

namespace {

constexpr std::int64_t kBlock = std::int64_t{4} << 20;         // bytes
constexpr std::int64_t kMostShared = std::int64_t{256} << 10;  // bytes of a tensor that lies in a block

}  // namespace

torch::Tensor TensorBlocks::copy(const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.detach();
  const torch::Tensor values = whole.is_non_overlapping_and_dense() ? whole : whole.contiguous();
  if (static_cast<std::int64_t>(values.nbytes()) > kMostShared) return values.clone();
  const bool fits = block_.defined() && block_.scalar_type() == values.scalar_type() &&
                    block_.device() == values.device() && taken_ + values.numel() <= block_.numel();
  if (!fits) {
    block_ = at::empty({kBlock / static_cast<std::int64_t>(values.element_size())}, values.options());
    taken_ = 0;
  }
  torch::Tensor place = block_.as_strided(values.sizes(), values.strides(), taken_);
  taken_ += values.numel();
  return place.copy_(values);
}

}  // namespace sdtune::train
