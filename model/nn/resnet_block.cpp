#include "model/nn/resnet_block.h"

#include <utility>

#include "model/core/check.h"

namespace sdtune::model {

ResnetBlock2DImpl::ResnetBlock2DImpl(const ResnetOptions& options)
    : options_(options),
      norm1_(options.norm_num_groups, options.in_channels, options.norm_eps),
      conv1_(Conv2dOptions{.in_channels = options.in_channels, .out_channels = options.out_channels}),
      norm2_(options.norm_num_groups, options.out_channels, options.norm_eps),
      conv2_(Conv2dOptions{.in_channels = options.out_channels, .out_channels = options.out_channels}) {
  register_module("norm1", norm1_);
  register_module("conv1", conv1_);
  if (options.time_channels > 0) {
    time_emb_proj_ = register_module("time_emb_proj", Linear(options.time_channels, options.out_channels));
  }
  register_module("norm2", norm2_);
  register_module("conv2", conv2_);
  if (options.in_channels != options.out_channels) {
    conv_shortcut_ = register_module(
        "conv_shortcut",
        Conv2d(Conv2dOptions{
            .in_channels = options.in_channels, .out_channels = options.out_channels, .kernel = 1, .padding = 0}));
  }
}

torch::Tensor ResnetBlock2DImpl::forward(const torch::Tensor& x, const torch::Tensor& time) {
  check_shape(x, {-1, options_.in_channels, -1, -1}, "resnet input");
  torch::Tensor offset;
  if (time_emb_proj_) {
    check_shape(time, {x.size(0), options_.time_channels}, "resnet time embedding");
    offset = time_emb_proj_(time);
  }
  // A statement each, so that none keeps the map before the last alive.
  torch::Tensor y = norm1_->forward_activated(x, options_.activation);
  y = conv1_(y);
  y = norm2_->forward_activated_over(std::move(y), options_.activation, offset);
  y = conv2_(y);
  // In place: a convolution needs its input in backward, not its result.
  y.add_(conv_shortcut_ ? conv_shortcut_(x) : x);
  return options_.output_scale_factor == 1.0 ? y : y.div_(options_.output_scale_factor);
}

}  // namespace sdtune::model
