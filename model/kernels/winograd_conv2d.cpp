#include "model/kernels/winograd_conv2d.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "model/core/tensor_memory.h"
#include "model/kernels/matrix_product.h"
#include "model/kernels/patch_conv2d.h"
#include "model/kernels/winograd_blocks.h"
#include "model/kernels/winograd_panels.h"
#include "model/kernels/winograd_tiles.h"
#include "model/products/cpu_vectors.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using winograd::ChannelRange;
using winograd::kPositions;
using winograd::TileBlock;

constexpr int64_t kFewestPixels = 256;
// In and out. With fewer the transforms cost as much as the products that they spare, in the backward pass more.
constexpr int64_t kFewestChannels = 64;
// Per pixel that many channels may come out: transforming the whole weight costs as much as so many pixels. By panels
// any number is worth it: 1280 to 1280 channels of 16 x 16 px take 14 ms with AVX-512 and 18 with AVX2, by products of
// patches 38 and 41, and the gradient of their kernels 18 and 22, with 2 threads on an EPYC of family 25, model 17.
constexpr int64_t kChannelsPerPixel = 2;
// In bfloat16 products without transforms take half the time: transforming a whole weight is worth it where it has many
// pixels.
constexpr int64_t kFewestBfloat16Pixels = 4096;
constexpr PatchShape kPatch = {.kernel = 3, .stride = 1, .padding = 1};
// Numbers of transformed weights that are in memory at once.
constexpr int64_t kWeightNumbers = int64_t{8} << 20;

bool is_worth_it_in_bfloat16(const torch::Tensor& x, int64_t pixels) {
  return pixels >= kFewestBfloat16Pixels || winograd::takes_panels(winograd::tile_count(x), x.scalar_type());
}

bool is_worth_its_kernels(const torch::Tensor& x, int64_t pixels, int64_t out) {
  if (kChannelsPerPixel * pixels >= out) return true;
  const int64_t tiles = winograd::tile_count(x);
  return winograd::takes_panels(tiles, x.scalar_type()) &&
         (x.scalar_type() == torch::kBFloat16 || winograd::takes_panels_for_gradient(tiles));
}

// Ranges of `channels` channels whose transformed kernels of `others` channels each fit into kWeightNumbers.
std::vector<ChannelRange> ranges(int64_t channels, int64_t others) {
  const int64_t groups = channels / winograd::kChannelGroup;
  const int64_t most = std::max<int64_t>(kWeightNumbers / (kPositions * others * winograd::kChannelGroup), 1);
  const int64_t parts = (groups + most - 1) / most, count = (groups + parts - 1) / parts * winograd::kChannelGroup;
  std::vector<ChannelRange> out;
  for (int64_t begin = 0; begin < channels; begin += count) out.push_back({begin, std::min(count, channels - begin)});
  return out;
}

torch::Tensor map_of(const torch::Tensor& x, int64_t channels) {
  return torch::empty({x.size(0), channels, x.size(2), x.size(3)}, x.options().requires_grad(false),
                      torch::MemoryFormat::ChannelsLast);
}

// Channels of y from `first` on; `weight` [36, in, n] in any order of memory.
void convolve_into(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, int64_t first,
                   const torch::Tensor& y) {
  const int64_t in = weight.size(1), out = weight.size(2);
  winograd::for_each_block(winograd::tile_count(x), in + out, weight.numel(), [&](const TileBlock& block) {
    const torch::Tensor sums = torch::empty({kPositions, block.count, out}, torch::kFloat32);
    multiply_batches(winograd::transformed_input(x, block), weight, sums, /*adds=*/false);
    winograd::write_tiles(sums, bias, block, first, y);
  });
}

torch::Tensor in_float32(const torch::Tensor& constants) {
  return constants.defined() ? constants.to(torch::kFloat32) : constants;
}

// All channels of y. `flipped`: of the kernels turned by 180 degrees, from the channels that come out to those that go
// in.
void convolve_by_panels(const torch::Tensor& x, const torch::Tensor& weight, bool flipped, const torch::Tensor& bias,
                        const torch::Tensor& y) {
  const TileBlock all = {0, winograd::tile_count(x)};
  const torch::Tensor sums = torch::empty({kPositions, all.count, y.size(1)}, torch::kFloat32);
  winograd::multiply_by_kernels(winograd::transformed_input(x, all), weight, flipped, sums);
  winograd::write_tiles(sums, bias, all, 0, y);
}

// bias in float32.
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const int64_t out = weight.size(0), in = weight.size(1);
  torch::Tensor y = map_of(x, out);
  const TensorMemoryScope scratch;  // of what is transformed: the system would clear its pages at every call
  if (winograd::takes_panels(winograd::tile_count(x), x.scalar_type())) {
    convolve_by_panels(x, weight, /*flipped=*/false, bias, y);
    return y;
  }
  const torch::Tensor kernels = in_float32(weight);
  for (const ChannelRange& outs : ranges(out, in)) {
    const torch::Tensor part = winograd::transformed_weight(kernels, outs, {0, in}, /*flipped=*/false);
    convolve_into(x, part.transpose(1, 2), bias, outs.begin, y);
  }
  return y;
}

// A convolution too: of dy with the kernels turned, from the channels that came out to those that went in.
torch::Tensor input_gradient(const torch::Tensor& dy, const torch::Tensor& weight) {
  const int64_t out = weight.size(0), in = weight.size(1);
  torch::Tensor dx = map_of(dy, in);
  const TensorMemoryScope scratch;
  if (winograd::takes_panels(winograd::tile_count(dy), dy.scalar_type())) {
    convolve_by_panels(dy, weight, /*flipped=*/true, torch::Tensor(), dx);
    return dx;
  }
  const torch::Tensor kernels = in_float32(weight);
  for (const ChannelRange& ins : ranges(in, out)) {
    const torch::Tensor part = winograd::transformed_weight(kernels, {0, out}, ins, /*flipped=*/true);
    convolve_into(dy, part, torch::Tensor(), ins.begin, dx);
  }
  return dx;
}

torch::Tensor weight_gradient(const torch::Tensor& x, const torch::Tensor& dy) {
  const int64_t out = dy.size(1), in = x.size(1);
  torch::Tensor gradient = torch::empty({out, in, 3, 3}, x.options().requires_grad(false));
  const TensorMemoryScope scratch;
  if (winograd::takes_panels_for_gradient(winograd::tile_count(x))) {
    const TileBlock all = {0, winograd::tile_count(x)};
    winograd::write_kernel_gradient(winograd::transformed_gradient(dy, all), winograd::transformed_input(x, all),
                                    gradient);
    return gradient;
  }
  const std::vector<ChannelRange> parts = ranges(out, in);
  for (const ChannelRange& outs : parts) {
    const torch::Tensor dy_part =
        parts.size() == 1 ? dy : dy.narrow(1, outs.begin, outs.count).contiguous(torch::MemoryFormat::ChannelsLast);
    const torch::Tensor sums = torch::empty({kPositions, outs.count, in}, torch::kFloat32);
    winograd::for_each_block(winograd::tile_count(x), in + outs.count, sums.numel(), [&](const TileBlock& block) {
      multiply_batches(winograd::transformed_gradient(dy_part, block).transpose(1, 2),
                       winograd::transformed_input(x, block), sums, /*adds=*/block.begin > 0);
    });
    winograd::write_weight_gradient(sums, outs.begin, gradient);
  }
  return gradient;
}

// The first arguments of aten::convolution, for traces.
std::vector<c10::IValue> recorded(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return {x, weight, bias_or_none(bias), std::vector<int64_t>{1}, std::vector<int64_t>{1}};
}

struct WinogradConvolution : torch::autograd::Function<WinogradConvolution> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias) {
    const torch::Tensor constants = bias.value_or(torch::Tensor());
    RECORD_FUNCTION("sdtune::winograd_convolution", recorded(x, weight, constants));
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    return convolve(x, weight, in_float32(constants));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const torch::Tensor dy = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    // In bfloat16 the gradient of the weight would be transformed twice, from few pixels a channel: a product without
    // transforms is faster.
    const bool is_direct = context->needs_input_grad(1) && x.scalar_type() == torch::kBFloat16;
    const bool is_by_winograd = context->needs_input_grad(1) && !is_direct;
    variable_list out(3);
    if (context->needs_input_grad(0) || is_by_winograd) {
      RECORD_FUNCTION("sdtune::winograd_convolution_backward",
                      std::vector<c10::IValue>({dy, weight, context->needs_input_grad(0), is_by_winograd}));
      if (context->needs_input_grad(0)) out[0] = input_gradient(dy, weight);
      if (is_by_winograd) out[1] = weight_gradient(x, dy);
    }
    if (is_direct) out[1] = weight_gradient_of_conv2d(dy, x, weight, kPatch);
    const bool has_bias = context->saved_data["has_bias"].toBool();  // without one there is no third edge to ask for
    if (has_bias && context->needs_input_grad(2)) out[2] = dy.sum({0, 2, 3});
    return out;
  }
};

}  // namespace

bool can_convolve_by_winograd(const torch::Tensor& x, const torch::Tensor& weight, const ConvShape& shape) {
  const int64_t out = weight.size(0), in = weight.size(1), pixels = x.size(0) * x.size(2) * x.size(3);
  const bool is_float = x.scalar_type() == torch::kFloat32;
  const bool is_bfloat16 = x.scalar_type() == torch::kBFloat16;
  return x.is_cpu() && (is_float || is_bfloat16) && weight.scalar_type() == x.scalar_type() && !is_of_sizes_only() &&
         x.is_contiguous(torch::MemoryFormat::ChannelsLast) && x.size(1) == in && weight.is_contiguous() &&
         weight.size(2) == 3 && weight.size(3) == 3 && shape.stride == 1 && shape.padding == 1 &&
         in % winograd::kChannelGroup == 0 && out % winograd::kChannelGroup == 0 &&
         std::min(in, out) >= kFewestChannels && pixels >= kFewestPixels && is_worth_its_kernels(x, pixels, out) &&
         vectors_of_this_cpu() && (is_float || is_worth_it_in_bfloat16(x, pixels));
}

torch::Tensor winograd_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  return WinogradConvolution::apply(x, weight, bias_or_none(bias));
}

torch::Tensor winograd_weight(const torch::Tensor& weight) {
  return winograd::transformed_weight(in_float32(weight), {0, weight.size(0)}, {0, weight.size(1)}, /*flipped=*/false);
}

torch::Tensor winograd_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& transformed) {
  RECORD_FUNCTION("sdtune::winograd_convolution", recorded(x, weight, bias));
  torch::Tensor y = map_of(x, weight.size(0));
  const TensorMemoryScope scratch;
  convolve_into(x, transformed.transpose(1, 2), in_float32(bias), 0, y);
  return y;
}

}  // namespace sdtune::model
