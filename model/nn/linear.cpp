#include "model/nn/linear.h"

#include <cmath>
#include <utility>

#include "model/kernels/conv2d.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/matrix_product.h"
#include "model/nn/initial_values.h"

namespace sdtune::model {
namespace {

// PyTorch's initial range for weight and bias of a layer: one over the root of the inputs that one output sees.
double initial_bound(int64_t fan_in) {
  return 1.0 / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool with_bias) {
  const double bound = initial_bound(in_features);
  weight = register_parameter("weight", uniform_parameter({out_features, in_features}, bound));
  if (with_bias) {
    bias = register_parameter("bias", uniform_parameter({out_features}, bound));
  }
}

torch::Tensor LinearImpl::forward(const torch::Tensor& x) {
  return add_branches(apply_linear(x, weight, bias), x);
}

torch::Tensor LinearImpl::forward_without_bias(const torch::Tensor& x) {
  return add_branches(apply_linear(x, weight), x);
}

torch::Tensor LinearImpl::add_branches(torch::Tensor y, const torch::Tensor& x) const {
  if (branches.empty()) return y;
  return with_branches(std::move(y), x, [](const torch::Tensor& seen, const torch::Tensor& matrix, bool /*is_down*/) {
    return apply_linear(seen, matrix);
  });
}

Conv2dImpl::Conv2dImpl(const Conv2dOptions& options) : options_(options) {
  const double bound = initial_bound(options.in_channels * options.kernel * options.kernel);
  weight = register_parameter(
      "weight", uniform_parameter({options.out_channels, options.in_channels, options.kernel, options.kernel}, bound));
  bias = register_parameter("bias", uniform_parameter({options.out_channels}, bound));
}

torch::Tensor Conv2dImpl::forward(const torch::Tensor& x) {
  return add_branches(conv2d(x, weight, bias, {.stride = options_.stride, .padding = options_.padding}), x);
}

torch::Tensor Conv2dImpl::add_branches(torch::Tensor y, const torch::Tensor& x) const {
  if (branches.empty()) return y;
  return with_branches(std::move(y), x, [&](const torch::Tensor& seen, const torch::Tensor& kernel, bool is_down) {
    const ConvShape shape = {.stride = is_down ? options_.stride : 1, .padding = is_down ? options_.padding : 0};
    if (computes_in_float32(seen)) return float32_conv2d(seen, kernel, {}, shape);
    // Not conv2d, whose products of patches would change the bits of float32 runs that are resumed.
    return torch::conv2d(seen, kernel, {}, shape.stride, shape.padding);
  });
}

}  // namespace sdtune::model
