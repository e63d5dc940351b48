#include "model/nn/resample.h"

#include "model/kernels/upsampled_conv2d.h"

namespace sdtune::model {

Downsample2DImpl::Downsample2DImpl(int64_t channels, int64_t padding)
    : pad_after_(padding == 0),
      conv_(Conv2dOptions{
          .in_channels = channels, .out_channels = channels, .kernel = 3, .stride = 2, .padding = padding}) {
  register_module("conv", conv_);
}

torch::Tensor Downsample2DImpl::forward(const torch::Tensor& x) {
  return conv_(pad_after_ ? torch::constant_pad_nd(x, {0, 1, 0, 1}) : x);
}

Upsample2DImpl::Upsample2DImpl(int64_t channels)
    : conv_(Conv2dOptions{.in_channels = channels, .out_channels = channels}) {
  register_module("conv", conv_);
}

torch::Tensor Upsample2DImpl::forward(const torch::Tensor& x, int64_t height, int64_t width) {
  const bool doubles = height == 2 * x.size(2) && width == 2 * x.size(3);
  if (doubles && conv_->branches.empty() && can_convolve_upsampled(x, conv_->weight, conv_->bias)) {
    return upsampled_conv2d(x, conv_->weight, conv_->bias);
  }
  return conv_(torch::upsample_nearest2d(x, {height, width}));
}

}  // namespace sdtune::model
