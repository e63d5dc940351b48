// The shape of every tensor that enters a module, checked in one line.
#pragma once

#include <torch/types.h>

#include <string>

namespace sdtune::model {

// Refuses a tensor whose shape is not `expected` (-1 = any size) with one message that names it, what came and what is
// allowed. This is a call contract, so it throws c10::Error and not a user's error.
inline void check_shape(const torch::Tensor& tensor, torch::IntArrayRef expected, const char* name) {
  TORCH_CHECK(tensor.defined(), name, ": no tensor given; expected shape ", expected, " (-1 = any)");
  bool same = tensor.dim() == static_cast<int64_t>(expected.size());
  for (int64_t i = 0; same && i < tensor.dim(); ++i) {
    same = expected[i] == -1 || tensor.size(i) == expected[i];
  }
  TORCH_CHECK(same, name, ": got shape ", tensor.sizes(), ", expected ", expected, " (-1 = any)");
}

}  // namespace sdtune::model
