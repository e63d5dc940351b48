#include "model/nn/norm.h"

namespace sdtune::model {

GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t num_channels, double eps)
    : num_groups_(num_groups), eps_(eps) {
  TORCH_CHECK(num_groups > 0 && num_channels % num_groups == 0, "group norm: ", num_channels,
              " channels do not divide into ", num_groups, " groups");
  weight = register_parameter("weight", torch::ones({num_channels}));
  bias = register_parameter("bias", torch::zeros({num_channels}));
}

torch::Tensor GroupNormImpl::forward(const torch::Tensor& x) {
  return torch::group_norm(x, num_groups_, weight, bias, eps_);
}

torch::Tensor GroupNormImpl::forward_activated(const torch::Tensor& x, Activation activation,
                                               const torch::Tensor& offset) {
  const torch::Tensor shifted = offset.defined() ? x + offset.unsqueeze(2).unsqueeze(3) : x;
  return activate(forward(shifted), activation);
}

LayerNormImpl::LayerNormImpl(int64_t size, double eps) : eps_(eps) {
  weight = register_parameter("weight", torch::ones({size}));
  bias = register_parameter("bias", torch::zeros({size}));
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, weight.sizes(), weight, bias, eps_);
}

}  // namespace sdtune::model
