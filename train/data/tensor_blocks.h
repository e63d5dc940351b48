// Small tensors that are kept, side by side. Kept where they were computed, between the large ones that come and go
// with each image, thousands of them would leave gaps that malloc has to search: 4 % of the start with 5000 photos.
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace sdtune::train {

class TensorBlocks {
 public:
  // A copy with the same values, dtype, device and strides, without gradient; of a view with gaps a contiguous one. It
  // lives as long as it is held, and with it the up to 4 MiB that it shares with its neighbours; tensors of more than
  // 256 KiB get memory of their own.
  torch::Tensor copy(const torch::Tensor& tensor);

 private:
  torch::Tensor block_;     // [numbers], of one dtype and device
  std::int64_t taken_ = 0;  // of its numbers
};

}  // namespace sdtune::train
