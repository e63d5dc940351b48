#include "model/kernels/conv2d.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/matrix_product.h"
#include "model/kernels/packed_weights.h"
#include "model/kernels/patches.h"
#include "model/kernels/sizes_only.h"
#include "model/kernels/winograd_conv2d.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// For a channels_last map LibTorch copies the whole weight twice (its order, then oneDNN's blocks): out * in * k * k
// numbers each time, where patches are rows * in * k * k numbers once. So the number of channels that come out decides:
// measured with 2 threads on a CPU with AVX512 from 64 to 1280 channels.
constexpr int64_t kWeightCopies = 2;

bool are_patches_cheaper(int64_t rows, int64_t out_channels) {
  return rows <= kWeightCopies * out_channels;
}

// A channels_last map as a matrix with a row a pixel; shares memory.
torch::Tensor pixels_as_rows(const torch::Tensor& map) {
  return map.permute({0, 2, 3, 1}).reshape({-1, map.size(1)});
}

// The way back for a fresh matrix; not a view of it, so that callers may add to it in place.
torch::Tensor as_map(const torch::Tensor& rows, int64_t batch, int64_t height, int64_t width) {
  const int64_t channels = rows.size(1);
  torch::Tensor map = torch::empty({0}, rows.options());
  return map.set_(rows.storage(), 0, {batch, channels, height, width},
                  {height * width * channels, 1, width * channels, channels});
}

// A pixel's patch of kernel size 1 is the pixel itself.
bool is_pointwise(const PatchShape& shape) {
  return shape.kernel == 1 && shape.stride == 1 && shape.padding == 0;
}

torch::Tensor patches_of(const torch::Tensor& x, const PatchShape& shape) {
  return is_pointwise(shape) ? pixels_as_rows(x) : gather_patches(x, shape);
}

torch::Tensor input_gradient(const torch::Tensor& patches, const torch::Tensor& x, const PatchShape& shape) {
  if (!is_pointwise(shape)) return scatter_patches(patches, x, shape);
  return patches.view({x.size(0), x.size(2), x.size(3), x.size(1)}).permute({0, 3, 1, 2});
}

struct PatchConvolution : torch::autograd::Function<PatchConvolution> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias, const PatchShape& shape) {
    RECORD_FUNCTION("sdtune::patch_convolution",  // the first arguments of aten::convolution
                    std::vector<c10::IValue>(
                        {x, weight, bias, std::vector<int64_t>{shape.stride}, std::vector<int64_t>{shape.padding}}));
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["stride"] = shape.stride;
    context->saved_data["padding"] = shape.padding;
    const auto out_size = [&](int64_t size) { return (size + 2 * shape.padding - shape.kernel) / shape.stride + 1; };
    return as_map(product(patches_of(x, shape), weight.flatten(1).t(), bias.value_or(torch::Tensor())), x.size(0),
                  out_size(x.size(2)), out_size(x.size(3)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const PatchShape shape = {.kernel = weight.size(2),
                              .stride = context->saved_data["stride"].toInt(),
                              .padding = context->saved_data["padding"].toInt()};
    const torch::Tensor dy = pixels_as_rows(gradients[0]);
    RECORD_FUNCTION("sdtune::patch_convolution_backward",
                    std::vector<c10::IValue>({dy, weight, context->needs_input_grad(0), context->needs_input_grad(1)}));
    variable_list out(4);
    if (context->needs_input_grad(1)) out[1] = product(dy.t(), patches_of(x, shape)).view_as(weight);
    if (context->needs_input_grad(0)) out[0] = input_gradient(product(dy, weight.flatten(1)), x, shape);
    const bool has_bias = context->saved_data["has_bias"].toBool();  // without one there is no third edge to ask for
    if (has_bias && context->needs_input_grad(2)) out[2] = dy.sum(0);
    return out;
  }
};

bool is_channels_last(const torch::Tensor& x) {
  return x.is_contiguous(torch::MemoryFormat::ChannelsLast);
}

}  // namespace

torch::Tensor conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const ConvShape& shape) {
  PackedWeights* const packed = asks_for_gradient({x, weight, bias}) ? nullptr : packed_weights();
  if (can_convolve_by_winograd(x, weight, shape) && cpu_implementation().winograd_convolutions) {
    const bool is_kept = packed != nullptr && PackedWeights::keeps_winograd(weight);
    if (is_kept) return winograd_conv2d(x, weight, bias, packed->of_winograd(weight));
    return winograd_conv2d(x, weight, bias);
  }
  if (weight.scalar_type() == x.scalar_type() && computes_in_float32(x)) return float32_conv2d(x, weight, bias, shape);
  if (packed != nullptr && can_convolve_packed(x, weight, bias)) {
    return packed_conv2d(x, weight, bias, shape, *packed);
  }
  const PatchShape patch = {.kernel = weight.size(2), .stride = shape.stride, .padding = shape.padding};
  if (x.is_cpu() && x.scalar_type() == torch::kFloat32 && !is_of_sizes_only() && weight.is_contiguous() &&
      is_channels_last(x) && cpu_implementation().patch_convolutions) {
    const int64_t rows = x.size(0) * x.size(2) * x.size(3) / (shape.stride * shape.stride);
    if (is_pointwise(patch) || are_patches_cheaper(rows, weight.size(0))) {
      return PatchConvolution::apply(x, weight, bias_or_none(bias), patch);
    }
  }
  return torch::conv2d(x, weight, bias, shape.stride, shape.padding);
}

}  // namespace sdtune::model
