#include "model/kernels/upsampled_conv2d.h"

#include <ATen/core/grad_mode.h>

#include "model/kernels/asks_for_gradient.h"
#include "model/kernels/float32_compute.h"
#include "model/products/sizes_only.h"

namespace sdtune::model {
namespace {

// SD's autoencoder from 64 x 64 px on. Below, as in the UNet's maps, the sums of weights cost what is saved.
constexpr int64_t kLeastPixels = 4096;

// The taps of a kernel along `dim` as the first and second place of a doubled pixel see them: the pixel before and the
// pixel itself, then the pixel itself and the one behind. [2, ..] each of two taps.
torch::Tensor folded_taps(const torch::Tensor& kernel, int64_t dim) {
  const auto tap = [&](int64_t index) { return kernel.narrow(dim, index, 1); };
  const torch::Tensor first = torch::cat({tap(0), tap(1) + tap(2)}, dim);
  const torch::Tensor second = torch::cat({tap(0) + tap(1), tap(2)}, dim);
  return torch::stack({first, second});
}

// [out, in, 3, 3] -> [4 out, in, 2, 2]: rows first, then columns.
torch::Tensor folded_weight(const torch::Tensor& weight) {
  const torch::Tensor folded = folded_taps(folded_taps(weight.to(torch::kFloat32), 2), 4);  // [column, row, out, ..]
  return folded.transpose(0, 1).flatten(0, 2).to(weight.scalar_type());
}

}  // namespace

bool can_convolve_upsampled(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const torch::Dtype dtype = x.scalar_type();
  return x.is_cpu() && (dtype == torch::kFloat32 || dtype == torch::kBFloat16) && weight.scalar_type() == dtype &&
         !computes_in_float32(x) && x.is_contiguous(torch::MemoryFormat::ChannelsLast) && weight.size(2) == 3 &&
         weight.size(3) == 3 && x.size(2) * x.size(3) >= kLeastPixels && !is_of_sizes_only() &&
         !asks_for_gradient({x, weight, bias});
}

torch::Tensor upsampled_conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const torch::NoGradGuard no_grad;
  const int64_t batch = x.size(0), out = weight.size(0), height = x.size(2), width = x.size(3);
  // [B, 4 out, H + 1, W + 1]: what lies between two rows and columns of pixels sees both.
  const torch::Tensor between = torch::conv2d(x, folded_weight(weight), bias.repeat({4}), 1, 1);
  const torch::Tensor from = between.permute({0, 2, 3, 1});
  torch::Tensor result =
      torch::empty({batch, out, 2 * height, 2 * width}, x.options(), torch::MemoryFormat::ChannelsLast);
  const torch::Tensor to = result.permute({0, 2, 3, 1}).view({batch, height, 2, width, 2, out});
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 2; ++column) {
      to.select(2, row).select(3, column).copy_(
          from.narrow(1, row, height).narrow(2, column, width).narrow(3, (2 * row + column) * out, out));
    }
  }
  return result;
}

}  // namespace sdtune::model
