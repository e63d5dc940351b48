#include "model/kernels/patch_conv2d.h"

#include <ATen/ops/convolution_backward.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/matrix_product.h"
#include "model/kernels/pair_gradient.h"
#include "model/products/sizes_only.h"
#include "model/products/small_product.h"

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

// In bfloat16 the weight is half as large, and patches of as many rows take as long as the copies. The gradient of the
// weight, which LibTorch brings back from blocks, takes up to twenty times as long as the product: 48 and 2.4 ms for
// 1280 -> 1280 channels of 8 x 8 px with 2 threads on an EPYC of family 26, model 2.
bool are_patches_cheaper_in_bfloat16(int64_t rows, int64_t out_channels) {
  return rows <= out_channels;
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

// A lone image that was made of a sequence has any number as the stride of its batch. LibTorch takes it for a
// contiguous map then: it would copy it, and all maps behind it, into that order.
torch::Tensor with_usual_strides(const torch::Tensor& map) {
  const int64_t row = map.size(3) * map.size(1);
  return map.as_strided(map.sizes(), {map.size(2) * row, 1, row, map.size(1)});
}

// Large ones of bfloat16 as batches of one matrix, by oneDNN (matrix_product.cpp says why not as a matrix alone).
torch::Tensor patch_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias = {}) {
  if (is_small_product(a, {a.size(0), a.size(1), b.size(1)})) return small_product(a, b, bias);
  return a.scalar_type() == torch::kBFloat16 ? onednn_product(a, b, bias) : product(a, b, bias);
}

// dy: rows.
torch::Tensor input_gradient(const torch::Tensor& dy, const torch::Tensor& weight, const torch::Tensor& x,
                             const PatchShape& shape) {
  const bool is_bfloat16 = x.scalar_type() == torch::kBFloat16;
  if (is_bfloat16 && !is_pointwise(shape)) return input_gradient_by_pairs(dy.contiguous(), weight, x, shape);
  const torch::Tensor patches = patch_product(dy, weight.flatten(1));
  if (!is_pointwise(shape)) return scatter_patches(patches, x, shape);
  return patches.view({x.size(0), x.size(2), x.size(3), x.size(1)}).permute({0, 3, 1, 2});
}

// The gradients of input, weight and bias that are `wanted`.
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> library_backward(const torch::Tensor& dy,
                                                                         const torch::Tensor& x,
                                                                         const torch::Tensor& weight,
                                                                         const PatchShape& shape,
                                                                         std::array<bool, 3> wanted) {
  return at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef({weight.size(0)}),
                                  {shape.stride, shape.stride}, {shape.padding, shape.padding}, {1, 1},
                                  /*transposed=*/false, {0, 0}, /*groups=*/1, wanted);
}

torch::Tensor weight_gradient_by_patches(const torch::Tensor& dy, const torch::Tensor& x, const torch::Tensor& weight,
                                         const PatchShape& shape) {
  return patch_product(dy.t(), patches_of(x, shape)).view_as(weight);
}

struct PatchConvolution : torch::autograd::Function<PatchConvolution> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& map, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias, const PatchShape& shape,
                               const PatchPasses& passes) {
    const torch::Tensor x = with_usual_strides(map);
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["stride"] = shape.stride;
    context->saved_data["padding"] = shape.padding;
    context->saved_data["input"] = passes.input;
    context->saved_data["weight"] = passes.weight;
    if (!passes.result) return torch::conv2d(x, weight, bias, shape.stride, shape.padding);
    RECORD_FUNCTION("sdtune::patch_convolution",  // the first arguments of aten::convolution
                    std::vector<c10::IValue>(
                        {x, weight, bias, std::vector<int64_t>{shape.stride}, std::vector<int64_t>{shape.padding}}));
    const auto out_size = [&](int64_t size) { return (size + 2 * shape.padding - shape.kernel) / shape.stride + 1; };
    return as_map(patch_product(patches_of(x, shape), weight.flatten(1).t(), bias.value_or(torch::Tensor())), x.size(0),
                  out_size(x.size(2)), out_size(x.size(3)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const PatchShape shape = {.kernel = weight.size(2),
                              .stride = context->saved_data["stride"].toInt(),
                              .padding = context->saved_data["padding"].toInt()};
    const bool by_patches[] = {context->saved_data["input"].toBool(), context->saved_data["weight"].toBool()};
    const auto wanted = [&](std::size_t input, bool is_by_patches) {
      return context->needs_input_grad(input) && by_patches[input] == is_by_patches;
    };
    variable_list out(5);
    if (wanted(0, false) || wanted(1, false)) {
      std::tie(out[0], out[1], std::ignore) =
          library_backward(gradients[0], x, weight, shape, {wanted(0, false), wanted(1, false), false});
    }
    const torch::Tensor dy = pixels_as_rows(gradients[0]);
    if (wanted(0, true) || wanted(1, true)) {
      RECORD_FUNCTION("sdtune::patch_convolution_backward",
                      std::vector<c10::IValue>({dy, weight, wanted(0, true), wanted(1, true)}));
      if (wanted(1, true)) out[1] = weight_gradient_by_patches(dy, x, weight, shape);
      if (wanted(0, true)) out[0] = input_gradient(dy, weight, x, shape);
    }
    const bool has_bias = context->saved_data["has_bias"].toBool();  // without one there is no third edge to ask for
    if (has_bias && context->needs_input_grad(2)) out[2] = dy.sum(0);
    return out;
  }
};

bool is_channels_last(const torch::Tensor& x) {
  return x.is_contiguous(torch::MemoryFormat::ChannelsLast);
}

int64_t rows_of(const torch::Tensor& x, const PatchShape& shape) {
  return x.size(0) * x.size(2) * x.size(3) / (shape.stride * shape.stride);
}

}  // namespace

std::optional<PatchPasses> passes_by_patches(const torch::Tensor& x, const torch::Tensor& weight,
                                             const PatchShape& shape) {
  const bool can = x.is_cpu() && !is_of_sizes_only() && weight.is_contiguous() && is_channels_last(x) &&
                   weight.scalar_type() == x.scalar_type();
  if (!can) return std::nullopt;
  const int64_t rows = rows_of(x, shape), out = weight.size(0);
  if (x.scalar_type() == torch::kFloat32 && cpu_implementation().patch_convolutions) {
    if (is_pointwise(shape) || are_patches_cheaper(rows, out)) return PatchPasses{true, true, true};
  }
  if (x.scalar_type() == torch::kBFloat16 && cpu_implementation().bfloat16_patches) {
    const bool is_cheaper = are_patches_cheaper_in_bfloat16(rows, out);
    // A pixel's gradient is a sum over patches: oneDNN would round their entries, and then the sum is rounded again.
    const bool rounds_once = is_pointwise(shape) || can_multiply_gradient_by_pairs(weight);
    const PatchPasses passes = {.result = is_cheaper,
                                .input = is_cheaper && rounds_once,
                                .weight = are_patches_cheaper(rows, out) && asks_for_gradient({weight})};
    const bool has_usual_strides = x.suggest_memory_format() == torch::MemoryFormat::ChannelsLast;
    if (passes.result || passes.weight || !has_usual_strides) return passes;
  }
  return std::nullopt;
}

torch::Tensor patch_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                           const PatchShape& shape, const PatchPasses& passes) {
  return PatchConvolution::apply(x, weight, bias_or_none(bias), shape, passes);
}

torch::Tensor weight_gradient_of_conv2d(const torch::Tensor& dy, const torch::Tensor& map, const torch::Tensor& weight,
                                        const PatchShape& shape) {
  const torch::Tensor x = with_usual_strides(map);
  const bool can = x.scalar_type() == torch::kFloat32 ? cpu_implementation().patch_convolutions
                                                      : cpu_implementation().bfloat16_patches;
  if (!can || !are_patches_cheaper(rows_of(x, shape), weight.size(0))) {
    return std::get<1>(library_backward(dy, x, weight, shape, {false, true, false}));
  }
  const torch::Tensor rows = pixels_as_rows(dy);
  RECORD_FUNCTION("sdtune::patch_convolution_backward", std::vector<c10::IValue>({rows, weight, false, true}));
  return weight_gradient_by_patches(rows, x, weight, shape);
}

}  // namespace sdtune::model
