// Whether autograd will want the gradient of an operation: kernels without a backward pass are for when it will not.
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/types.h>

#include <algorithm>
#include <initializer_list>

namespace sdtune::model {

// Of any of these; undefined tensors ask for none.
inline bool asks_for_gradient(std::initializer_list<torch::Tensor> tensors) {
  return torch::GradMode::is_enabled() && std::any_of(tensors.begin(), tensors.end(), [](const torch::Tensor& tensor) {
           return tensor.defined() && tensor.requires_grad();
         });
}

}  // namespace sdtune::model
