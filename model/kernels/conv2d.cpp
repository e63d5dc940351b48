#include "model/kernels/conv2d.h"

#include <optional>

#include "model/core/cpu_implementation.h"
#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/float32_compute.h"
#include "model/kernels/packed_weights.h"
#include "model/kernels/patch_conv2d.h"
#include "model/kernels/winograd_blocks.h"
#include "model/kernels/winograd_conv2d.h"
#include "model/kernels/winograd_panels.h"

namespace sdtune::model {
namespace {

// In bfloat16 a packed weight gains as much as Winograd's products with whole kernels do, on maps of fewer pixels.
constexpr int64_t kPixelsOfPacked = 16384;

bool takes_winograd(const torch::Tensor& x, const torch::Tensor& weight, const ConvShape& shape, bool has_packed) {
  if (!can_convolve_by_winograd(x, weight, shape)) return false;
  if (x.scalar_type() == torch::kFloat32) return cpu_implementation().winograd_convolutions;
  // Its gradient is computed without transforms, which needs instructions for bfloat16 or float32_conv2d.
  if (asks_for_gradient({weight}) && computes_in_float32(x)) return false;
  const bool by_panels = winograd::takes_panels(winograd::tile_count(x), x.scalar_type());
  const bool is_packed_faster = has_packed && !by_panels && x.size(0) * x.size(2) * x.size(3) < kPixelsOfPacked;
  return !is_packed_faster && cpu_implementation().bfloat16_winograd;
}

}  // namespace

torch::Tensor conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const ConvShape& shape) {
  PackedWeights* const packed = asks_for_gradient({x, weight, bias}) ? nullptr : packed_weights();
  if (takes_winograd(x, weight, shape, packed != nullptr)) {
    const bool is_kept = packed != nullptr && PackedWeights::keeps_winograd(weight);
    if (is_kept) return winograd_conv2d(x, weight, bias, packed->of_winograd(weight));
    return winograd_conv2d(x, weight, bias);
  }
  if (weight.scalar_type() == x.scalar_type() && computes_in_float32(x)) return float32_conv2d(x, weight, bias, shape);
  if (packed != nullptr && can_convolve_packed(x, weight, bias)) {
    return packed_conv2d(x, weight, bias, shape, *packed);
  }
  const PatchShape patch = {.kernel = weight.size(2), .stride = shape.stride, .padding = shape.padding};
  if (const auto passes = passes_by_patches(x, weight, patch)) {
    return patch_conv2d(x, weight, bias, patch, *passes);
  }
  return torch::conv2d(x, weight, bias, shape.stride, shape.padding);
}

}  // namespace sdtune::model
