#include "model/vae/decoder.h"

namespace sdtune::model {

UpDecoderBlockImpl::UpDecoderBlockImpl(const VaeConfig& config, int64_t level) {
  const int64_t position = config.num_levels() - 1 - level;  // from the largest map
  const int64_t channels = config.block_out_channels[position];
  const int64_t before = level == 0 ? channels : config.block_out_channels[position + 1];
  resnets_ = std::make_unique<ModuleList<ResnetBlock2D>>(*this, "resnets");
  upsamplers_ = std::make_unique<ModuleList<Upsample2D>>(*this, "upsamplers");
  for (int64_t layer = 0; layer <= config.layers_per_block; ++layer) {
    resnets_->push_back(ResnetBlock2D(ResnetOptions{.in_channels = layer == 0 ? before : channels,
                                                    .out_channels = channels,
                                                    .norm_num_groups = config.norm_num_groups,
                                                    .norm_eps = kVaeNormEps,
                                                    .activation = config.act_fn}));
  }
  if (position > 0) upsamplers_->push_back(Upsample2D(channels));
}

torch::Tensor UpDecoderBlockImpl::forward(torch::Tensor x) {
  for (ResnetBlock2D& resnet : *resnets_) x = resnet(x);
  for (Upsample2D& upsample : *upsamplers_) x = upsample(x, 2 * x.size(2), 2 * x.size(3));
  return x;
}

VaeDecoderImpl::VaeDecoderImpl(const VaeConfig& config) {
  conv_in_ = register_module("conv_in", Conv2d(Conv2dOptions{.in_channels = config.latent_channels,
                                                             .out_channels = config.block_out_channels.back()}));
  up_blocks_ = std::make_unique<ModuleList<UpDecoderBlock>>(*this, "up_blocks");
  for (int64_t level = 0; level < config.num_levels(); ++level) up_blocks_->push_back(UpDecoderBlock(config, level));
  mid_block_ = register_module("mid_block", VaeMidBlock(config));
  const int64_t first = config.block_out_channels.front();
  conv_norm_out_ = register_module("conv_norm_out", GroupNorm(config.norm_num_groups, first, kVaeNormEps));
  conv_out_ =
      register_module("conv_out", Conv2d(Conv2dOptions{.in_channels = first, .out_channels = config.out_channels}));
}

torch::Tensor VaeDecoderImpl::forward(torch::Tensor x) {
  x = mid_block_(conv_in_(x));
  for (UpDecoderBlock& block : *up_blocks_) x = block(x);
  // SiLU here whatever act_fn says, as in diffusers.
  return conv_out_(conv_norm_out_->forward_activated(x, Activation::kSilu));
}

}  // namespace sdtune::model
