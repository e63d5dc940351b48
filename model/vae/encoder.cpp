#include "model/vae/encoder.h"

namespace sdtune::model {

DownEncoderBlockImpl::DownEncoderBlockImpl(const VaeConfig& config, int64_t level) {
  const int64_t channels = config.block_out_channels[level];
  resnets_ = std::make_unique<ModuleList<ResnetBlock2D>>(*this, "resnets");
  downsamplers_ = std::make_unique<ModuleList<Downsample2D>>(*this, "downsamplers");
  for (int64_t layer = 0; layer < config.layers_per_block; ++layer) {
    const int64_t in_channels = layer > 0 || level == 0 ? channels : config.block_out_channels[level - 1];
    resnets_->push_back(ResnetBlock2D(ResnetOptions{.in_channels = in_channels,
                                                    .out_channels = channels,
                                                    .norm_num_groups = config.norm_num_groups,
                                                    .norm_eps = kVaeNormEps,
                                                    .activation = config.act_fn}));
  }
  if (level + 1 < config.num_levels()) downsamplers_->push_back(Downsample2D(channels, /*padding=*/0));
}

torch::Tensor DownEncoderBlockImpl::forward(torch::Tensor x) {
  for (ResnetBlock2D& resnet : *resnets_) x = resnet(x);
  for (Downsample2D& downsample : *downsamplers_) x = downsample(x);
  return x;
}

VaeEncoderImpl::VaeEncoderImpl(const VaeConfig& config) {
  conv_in_ = register_module("conv_in", Conv2d(Conv2dOptions{.in_channels = config.in_channels,
                                                             .out_channels = config.block_out_channels.front()}));
  down_blocks_ = std::make_unique<ModuleList<DownEncoderBlock>>(*this, "down_blocks");
  for (int64_t level = 0; level < config.num_levels(); ++level) {
    down_blocks_->push_back(DownEncoderBlock(config, level));
  }
  mid_block_ = register_module("mid_block", VaeMidBlock(config));
  const int64_t last = config.block_out_channels.back();
  conv_norm_out_ = register_module("conv_norm_out", GroupNorm(config.norm_num_groups, last, kVaeNormEps));
  conv_out_ = register_module("conv_out",
                              Conv2d(Conv2dOptions{.in_channels = last, .out_channels = 2 * config.latent_channels}));
}

torch::Tensor VaeEncoderImpl::forward(torch::Tensor x) {
  x = conv_in_(x);
  for (DownEncoderBlock& block : *down_blocks_) x = block(x);
  x = mid_block_(x);
  // SiLU here whatever act_fn says, as in diffusers.
  return conv_out_(conv_norm_out_->forward_activated(x, Activation::kSilu));
}

}  // namespace sdtune::model
