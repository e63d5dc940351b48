#include "model/nn/norm.h"

#include <utility>

#include "model/kernels/group_norm.h"

namespace sdtune::model {

GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t num_channels, double eps)
    : num_groups_(num_groups), eps_(eps) {
  TORCH_CHECK(num_groups > 0 && num_channels % num_groups == 0, "group norm: ", num_channels,
              " channels do not divide into ", num_groups, " groups");
  weight = register_parameter("weight", torch::ones({num_channels}));
  bias = register_parameter("bias", torch::zeros({num_channels}));
}

torch::Tensor GroupNormImpl::forward(const torch::Tensor& x) {
  return group_norm(x, {.weight = weight, .bias = bias, .groups = num_groups_, .eps = eps_});
}

torch::Tensor GroupNormImpl::forward_activated(const torch::Tensor& x, Activation activation,
                                               const torch::Tensor& offset) {
  const bool silu = activation == Activation::kSilu;
  const torch::Tensor y = group_norm(
      x, {.weight = weight, .bias = bias, .offset = offset, .groups = num_groups_, .eps = eps_, .silu = silu});
  return silu ? y : activate(y, activation);
}

torch::Tensor GroupNormImpl::forward_activated_over(torch::Tensor x, Activation activation,
                                                    const torch::Tensor& offset) {
  const bool silu = activation == Activation::kSilu;
  const torch::Tensor y = group_norm_over(
      std::move(x),
      {.weight = weight, .bias = bias, .offset = offset, .groups = num_groups_, .eps = eps_, .silu = silu});
  return silu ? y : activate(y, activation);
}

LayerNormImpl::LayerNormImpl(int64_t size, double eps) : eps_(eps) {
  weight = register_parameter("weight", torch::ones({size}));
  bias = register_parameter("bias", torch::zeros({size}));
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, weight.sizes(), weight, bias, eps_);
}

}  // namespace sdtune::model
