// Tensors as the raw runs of numbers that the inner loops take.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "train/optim/adamw_kernel.h"

namespace sdtune::train {

inline constexpr std::int64_t kRunLength = 32768;  // numbers that one thread updates at a time

inline NumberFormat number_format(torch::ScalarType dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return NumberFormat::kFloat32;
    case torch::kBFloat16:
      return NumberFormat::kBFloat16;
    case torch::kFloat16:
      return NumberFormat::kFloat16;
    default:
      TORCH_CHECK(false, "numbers of type ", dtype, " cannot be trained");
  }
}

// The numbers of a dense tensor from `offset` on, in memory order.
inline NumberRun number_run(const torch::Tensor& tensor, std::int64_t offset) {
  auto* bytes = static_cast<char*>(tensor.data_ptr());
  return {bytes + offset * tensor.element_size(), number_format(tensor.scalar_type())};
}

}  // namespace sdtune::train
