#include "model/vae/vae_mid_block.h"

namespace sdtune::model {

SpatialAttentionImpl::SpatialAttentionImpl(int64_t channels, int64_t norm_num_groups, double eps)
    : AttentionImpl(AttentionOptions{
          .query_dim = channels, .context_dim = channels, .heads = 1, .head_dim = channels, .qkv_bias = true}),
      group_norm_(norm_num_groups, channels, eps) {
  register_module("group_norm", group_norm_);
}

torch::Tensor SpatialAttentionImpl::forward(const torch::Tensor& x) {
  const torch::Tensor sequence = group_norm_(x).flatten(2).transpose(1, 2);
  return AttentionImpl::forward(sequence).transpose(1, 2).unflatten(2, {x.size(2), x.size(3)}) + x;
}

VaeMidBlockImpl::VaeMidBlockImpl(const VaeConfig& config) {
  const int64_t channels = config.block_out_channels.back();
  const ResnetOptions resnet = {.in_channels = channels,
                                .out_channels = channels,
                                .norm_num_groups = config.norm_num_groups,
                                .norm_eps = kVaeNormEps,
                                .activation = config.act_fn};
  attentions_ = std::make_unique<ModuleList<SpatialAttention>>(*this, "attentions");
  resnets_ = std::make_unique<ModuleList<ResnetBlock2D>>(*this, "resnets");
  resnets_->push_back(ResnetBlock2D(resnet));
  if (config.mid_block_add_attention) {
    attentions_->push_back(SpatialAttention(channels, config.norm_num_groups, kVaeNormEps));
  }
  resnets_->push_back(ResnetBlock2D(resnet));
}

torch::Tensor VaeMidBlockImpl::forward(torch::Tensor x) {
  x = (*resnets_)[0](x);
  for (SpatialAttention& attention : *attentions_) x = attention(x);
  return (*resnets_)[1](x);
}

}  // namespace sdtune::model
