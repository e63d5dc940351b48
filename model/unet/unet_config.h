// config.json of a UNet2DConditionModel, with diffusers' names and defaults. What may be one value or a list in the
// file is a list with an entry a level here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/nn/activation.h"

namespace sdtune::model {

struct UNetConfig {
  int64_t sample_size = 0;  // latent px along an axis; 0 = not given
  int64_t in_channels = 4;
  int64_t out_channels = 4;
  bool center_input_sample = false;
  bool flip_sin_to_cos = true;
  int64_t freq_shift = 0;
  std::vector<std::string> down_block_types = {"CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D",
                                               "DownBlock2D"};
  std::string mid_block_type = "UNetMidBlock2DCrossAttn";  // or UNetMidBlock2D, or "" = none
  std::vector<std::string> up_block_types = {"UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D",
                                             "CrossAttnUpBlock2D"};
  std::vector<bool> only_cross_attention = {false, false, false, false};  // attn1 attends to the text as well
  std::vector<int64_t> block_out_channels = {320, 640, 1280, 1280};
  std::vector<int64_t> layers_per_block = {2, 2, 2, 2};
  int64_t downsample_padding = 1;
  double mid_block_scale_factor = 1.0;
  Activation act_fn = Activation::kSilu;
  int64_t norm_num_groups = 32;
  double norm_eps = 1e-5;
  std::vector<int64_t> cross_attention_dim = {1280, 1280, 1280, 1280};
  // A level: one depth for all its transformers, or a depth for each.
  std::vector<std::vector<int64_t>> transformer_layers_per_block = {{1}, {1}, {1}, {1}};
  // The same for the up blocks, in their order; empty: the mirror of transformer_layers_per_block.
  std::vector<std::vector<int64_t>> reverse_transformer_layers_per_block;
  // "attention_head_dim" of the file, which diffusers reads as the number of heads.
  std::vector<int64_t> num_attention_heads = {8, 8, 8, 8};
  bool use_linear_projection = false;
  bool upcast_attention = false;
  bool text_time = false;  // addition_embed_type: SDXL's size, crop and pooled text
  int64_t addition_time_embed_dim = 0;
  int64_t projection_class_embeddings_input_dim = 0;
  int64_t time_embedding_dim = 0;  // 0: four times the first level's channels
  int64_t conv_in_kernel = 3;
  int64_t conv_out_kernel = 3;

  bool operator==(const UNetConfig&) const = default;

  int64_t num_levels() const { return static_cast<int64_t>(block_out_channels.size()); }
  int64_t time_channels() const { return time_embedding_dim > 0 ? time_embedding_dim : 4 * block_out_channels.front(); }
  bool has_attention(const std::string& block_type) const { return block_type.rfind("CrossAttn", 0) == 0; }

  // Throws WeightError naming `where` and the key for a value, a block type or a key we do not support.
  static UNetConfig from_json(const Json& json, const std::string& where);
  Json to_json() const;
};

}  // namespace sdtune::model
