#include "model/unet/unet_blocks.h"

#include "model/core/check.h"
#include "model/nn/recompute.h"

namespace sdtune::model {
namespace {

ResnetOptions resnet_options(const UNetConfig& config, int64_t in_channels, int64_t out_channels) {
  return ResnetOptions{.in_channels = in_channels,
                       .out_channels = out_channels,
                       .time_channels = config.time_channels(),
                       .norm_num_groups = config.norm_num_groups,
                       .norm_eps = config.norm_eps,
                       .activation = config.act_fn};
}

TransformerOptions transformer_options(const UNetConfig& config, int64_t level, int64_t depth) {
  return TransformerOptions{.channels = config.block_out_channels[level],
                            .heads = config.num_attention_heads[level],
                            .depth = depth,
                            .context_dim = config.cross_attention_dim[level],
                            .norm_num_groups = config.norm_num_groups,
                            .use_linear_projection = config.use_linear_projection,
                            .only_cross_attention = config.only_cross_attention[level],
                            .upcast_attention = config.upcast_attention};
}

// Depth of the transformer after resnet `layer`, where a level names one depth for all or one for each.
int64_t depth_of(const std::vector<int64_t>& depths, int64_t layer) {
  return depths.size() == 1 ? depths.front() : depths.at(layer);
}

}  // namespace

UNetBlockImpl::UNetBlockImpl()
    : attentions_(std::make_unique<ModuleList<Transformer2D>>(*this, "attentions")),
      resnets_(std::make_unique<ModuleList<ResnetBlock2D>>(*this, "resnets")) {}

torch::Tensor UNetBlockImpl::run_resnet(std::int64_t layer, const torch::Tensor& x, const BlockConditions& conditions) {
  ResnetBlock2D resnet = (*resnets_)[layer];
  if (!recompute_) return resnet(x, conditions.time);
  return recompute([resnet](const std::vector<torch::Tensor>& inputs) mutable { return resnet(inputs[0], inputs[1]); },
                   {x, conditions.time});
}

torch::Tensor UNetBlockImpl::run_attention(std::int64_t layer, const torch::Tensor& x,
                                           const BlockConditions& conditions) {
  return attentions_->empty() ? x : (*attentions_)[layer](x, conditions.context, conditions.cache);
}

void UNetBlockImpl::set_gradient_checkpointing(bool on) {
  recompute_ = on;
  for (Transformer2D& attention : *attentions_) attention->set_gradient_checkpointing(on);
}

DownBlock2DImpl::DownBlock2DImpl(const UNetConfig& config, int64_t level) {
  const int64_t channels = config.block_out_channels[level];
  downsamplers_ = std::make_unique<ModuleList<Downsample2D>>(*this, "downsamplers");
  for (int64_t layer = 0; layer < config.layers_per_block[level]; ++layer) {
    const int64_t in_channels = layer > 0 || level == 0 ? channels : config.block_out_channels[level - 1];
    push_back(ResnetBlock2D(resnet_options(config, in_channels, channels)));
    if (config.has_attention(config.down_block_types[level])) {
      const int64_t depth = depth_of(config.transformer_layers_per_block[level], layer);
      push_back(Transformer2D(transformer_options(config, level, depth)));
    }
  }
  if (level + 1 < config.num_levels()) {
    downsamplers_->push_back(Downsample2D(channels, config.downsample_padding));
  }
}

torch::Tensor DownBlock2DImpl::forward(torch::Tensor x, const BlockConditions& conditions,
                                       std::vector<torch::Tensor>& skips) {
  for (int64_t layer = 0; layer < num_layers(); ++layer) {
    x = run_resnet(layer, x, conditions);
    x = run_attention(layer, x, conditions);
    skips.push_back(x);
  }
  for (Downsample2D& downsample : *downsamplers_) {
    x = downsample(x);
    skips.push_back(x);
  }
  return x;
}

MidBlock2DImpl::MidBlock2DImpl(const UNetConfig& config) {
  const int64_t level = config.num_levels() - 1;
  const int64_t channels = config.block_out_channels[level];
  ResnetOptions resnet = resnet_options(config, channels, channels);
  resnet.output_scale_factor = config.mid_block_scale_factor;
  push_back(ResnetBlock2D(resnet));
  if (config.mid_block_type == "UNetMidBlock2DCrossAttn") {
    TransformerOptions options = transformer_options(config, level, config.transformer_layers_per_block[level].front());
    options.only_cross_attention = false;  // diffusers does not pass it on to this block
    push_back(Transformer2D(options));
    push_back(ResnetBlock2D(resnet));
  }
}

torch::Tensor MidBlock2DImpl::forward(torch::Tensor x, const BlockConditions& conditions) {
  x = run_resnet(0, x, conditions);
  if (num_layers() == 1) return x;
  x = run_attention(0, x, conditions);
  return run_resnet(1, x, conditions);
}

UpBlock2DImpl::UpBlock2DImpl(const UNetConfig& config, int64_t position) {
  const std::vector<int64_t>& channels = config.block_out_channels;
  const int64_t level = config.num_levels() - 1 - position;
  const int64_t below = position == 0 ? channels[level] : channels[level + 1];  // what comes in
  const int64_t last_skip = level > 0 ? channels[level - 1] : channels[level];  // the down block's input
  const std::vector<int64_t>& depths = config.reverse_transformer_layers_per_block.empty()
                                           ? config.transformer_layers_per_block[level]
                                           : config.reverse_transformer_layers_per_block[position];
  upsamplers_ = std::make_unique<ModuleList<Upsample2D>>(*this, "upsamplers");
  const int64_t layers = config.layers_per_block[level] + 1;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t from_below = layer == 0 ? below : channels[level];
    const int64_t from_skip = layer + 1 == layers ? last_skip : channels[level];
    push_back(ResnetBlock2D(resnet_options(config, from_below + from_skip, channels[level])));
    if (config.has_attention(config.up_block_types[position])) {
      push_back(Transformer2D(transformer_options(config, level, depth_of(depths, layer))));
    }
  }
  if (level > 0) upsamplers_->push_back(Upsample2D(channels[level]));
}

torch::Tensor UpBlock2DImpl::forward(torch::Tensor x, const BlockConditions& conditions,
                                     std::vector<torch::Tensor>& skips) {
  for (int64_t layer = 0; layer < num_layers(); ++layer) {
    TORCH_INTERNAL_ASSERT(!skips.empty(), "more resnets in the up blocks than skips from the down blocks");
    x = torch::cat({x, skips.back()}, 1);
    skips.pop_back();
    x = run_resnet(layer, x, conditions);
    x = run_attention(layer, x, conditions);
  }
  for (Upsample2D& upsample : *upsamplers_) {
    // Odd sizes do not double back to themselves: go to the size of the skip that comes next.
    x = upsample(x, skips.back().size(2), skips.back().size(3));
  }
  return x;
}

}  // namespace sdtune::model
