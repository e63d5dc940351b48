#include "model/unet/unet.h"

#include <utility>

#include "model/core/check.h"
#include "model/core/cpu_implementation.h"

namespace sdtune::model {

UNet2DConditionModelImpl::UNet2DConditionModelImpl(const UNetConfig& config) : config_(config) {
  const int64_t first = config.block_out_channels.front();
  conv_in_ = register_module("conv_in", Conv2d(Conv2dOptions{.in_channels = config.in_channels,
                                                             .out_channels = first,
                                                             .kernel = config.conv_in_kernel,
                                                             .padding = (config.conv_in_kernel - 1) / 2}));
  time_embedding_ = register_module("time_embedding", TimestepEmbedding(first, config.time_channels(), config.act_fn));
  if (config.text_time) {
    add_embedding_ = register_module("add_embedding", TimestepEmbedding(config.projection_class_embeddings_input_dim,
                                                                        config.time_channels(), Activation::kSilu));
  }
  down_blocks_ = std::make_unique<ModuleList<DownBlock2D>>(*this, "down_blocks");
  up_blocks_ = std::make_unique<ModuleList<UpBlock2D>>(*this, "up_blocks");
  for (int64_t level = 0; level < config.num_levels(); ++level) down_blocks_->push_back(DownBlock2D(config, level));
  if (!config.mid_block_type.empty()) mid_block_ = register_module("mid_block", MidBlock2D(config));
  for (int64_t position = 0; position < config.num_levels(); ++position) {
    up_blocks_->push_back(UpBlock2D(config, position));
  }
  conv_norm_out_ = register_module("conv_norm_out", GroupNorm(config.norm_num_groups, first, config.norm_eps));
  conv_out_ = register_module("conv_out", Conv2d(Conv2dOptions{.in_channels = first,
                                                               .out_channels = config.out_channels,
                                                               .kernel = config.conv_out_kernel,
                                                               .padding = (config.conv_out_kernel - 1) / 2}));
}

torch::Tensor UNet2DConditionModelImpl::time_embedding(const torch::Tensor& timestep, int64_t batch,
                                                       const AddedConditions& added) {
  const torch::TensorOptions weights = conv_in_->weight.options();
  const torch::Tensor times = timestep.to(weights.device()).reshape({-1}).expand({batch});
  SinusoidOptions sinusoid = {.channels = config_.block_out_channels.front(),
                              .flip_sin_to_cos = config_.flip_sin_to_cos,
                              .freq_shift = config_.freq_shift};
  torch::Tensor embedding = time_embedding_(sinusoidal_embedding(times, sinusoid).to(weights));
  if (add_embedding_) {
    check_shape(added.time_ids, {batch, -1}, "time_ids");
    sinusoid.channels = config_.addition_time_embed_dim;
    const torch::Tensor ids = added.time_ids.to(weights.device());
    const torch::Tensor id_embedding = sinusoidal_embedding(ids.reshape({-1}), sinusoid).reshape({batch, -1});
    const int64_t width = config_.projection_class_embeddings_input_dim - id_embedding.size(1);
    check_shape(added.text_embeds, {batch, width}, "text_embeds");
    const torch::Tensor text = added.text_embeds.to(weights);
    embedding = embedding + add_embedding_(torch::cat({text, id_embedding.to(weights)}, 1));
  }
  return activate(embedding, config_.act_fn);  // every resnet begins with it, so once for all
}

torch::Tensor UNet2DConditionModelImpl::forward(const torch::Tensor& sample, const torch::Tensor& timestep,
                                                const torch::Tensor& context, const AddedConditions& added,
                                                ContextCache* cache) {
  check_shape(sample, {-1, config_.in_channels, -1, -1}, "sample");
  const int64_t batch = sample.size(0);
  check_shape(context, {batch, -1, -1}, "encoder_hidden_states");
  const torch::TensorOptions weights = conv_in_->weight.options();
  tell("conv_in");
  const BlockConditions conditions = {
      .time = time_embedding(timestep, batch, added), .context = context.to(weights), .cache = cache};

  const torch::MemoryFormat format = map_memory_format(weights.device(), conv_in_->weight.scalar_type());
  torch::Tensor x = sample.to(weights).contiguous(format);
  if (config_.center_input_sample) x = 2 * x - 1;
  x = conv_in_(x);
  std::vector<torch::Tensor> skips = {x};
  for (int64_t i = 0; i < down_blocks_->size(); ++i) {
    tell("down_blocks." + std::to_string(i));
    x = (*down_blocks_)[i](std::move(x), conditions, skips);
  }
  tell("mid_block");
  if (mid_block_) x = mid_block_(std::move(x), conditions);
  for (int64_t i = 0; i < up_blocks_->size(); ++i) {
    tell("up_blocks." + std::to_string(i));
    x = (*up_blocks_)[i](std::move(x), conditions, skips);
  }
  tell("conv_out");
  return conv_out_(conv_norm_out_->forward_activated(x, config_.act_fn));
}

void UNet2DConditionModelImpl::set_gradient_checkpointing(bool on) {
  for (DownBlock2D& block : *down_blocks_) block->set_gradient_checkpointing(on);
  if (mid_block_) mid_block_->set_gradient_checkpointing(on);
  for (UpBlock2D& block : *up_blocks_) block->set_gradient_checkpointing(on);
}

}  // namespace sdtune::model
