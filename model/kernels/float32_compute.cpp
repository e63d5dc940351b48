#include "model/kernels/float32_compute.h"

#include <ATen/Context.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <optional>
#include <vector>

#include "model/kernels/matrix_product.h"
#include "model/kernels/packed_weights.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

torch::Tensor wide(const torch::Tensor& x) {
  return x.defined() ? x.to(torch::kFloat32) : x;
}

torch::Tensor narrow(const torch::Tensor& x) {
  return x.to(torch::kBFloat16);
}

struct Float32Linear : torch::autograd::Function<Float32Linear> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    return narrow(apply_linear(wide(x), wide(weight), wide(bias.value_or(torch::Tensor()))));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const torch::Tensor dy = wide(as_rows(gradients[0]));
    variable_list out(3);
    if (context->needs_input_grad(0)) out[0] = narrow(product(dy, wide(weight))).view(x.sizes());
    if (context->needs_input_grad(1)) out[1] = narrow(product(dy.t(), wide(as_rows(x))));
    const bool has_bias = context->saved_data["has_bias"].toBool();  // without one there is no third edge to ask for
    if (has_bias && context->needs_input_grad(2)) out[2] = narrow(dy.sum(0));
    return out;
  }
};

struct Float32Convolution : torch::autograd::Function<Float32Convolution> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias, const ConvShape& shape) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["stride"] = shape.stride;
    context->saved_data["padding"] = shape.padding;
    const PackedWeightsScope none(nullptr);  // it would keep each call's copy of the weight
    return narrow(conv2d(wide(x), wide(weight), wide(bias.value_or(torch::Tensor())), shape));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const std::array<bool, 3> wanted = {context->needs_input_grad(0), context->needs_input_grad(1),
                                        has_bias && context->needs_input_grad(2)};
    const int64_t stride = context->saved_data["stride"].toInt(), padding = context->saved_data["padding"].toInt();
    const auto [dx, dw, db] = at::convolution_backward(
        wide(gradients[0]), wide(x), wide(weight), at::OptionalIntArrayRef({weight.size(0)}), {stride, stride},
        {padding, padding}, {1, 1}, /*transposed=*/false, {0, 0}, /*groups=*/1, wanted);
    variable_list out(4);
    if (wanted[0]) out[0] = narrow(dx);
    if (wanted[1]) out[1] = narrow(dw);
    if (wanted[2]) out[2] = narrow(db);
    return out;
  }
};

}  // namespace

bool computes_in_float32(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kBFloat16 && !is_of_sizes_only() &&
         !(can_multiply_by_onednn() && at::globalContext().userEnabledMkldnn());
}

torch::Tensor float32_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return Float32Linear::apply(x, weight, bias_or_none(bias));
}

torch::Tensor float32_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                             const ConvShape& shape) {
  return Float32Convolution::apply(x, weight, bias_or_none(bias), shape);
}

}  // namespace sdtune::model
