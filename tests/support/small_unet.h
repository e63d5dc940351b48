// A UNet of two levels that runs in milliseconds.
#pragma once

#include "model/unet/unet_config.h"

namespace sdtune::test {

inline model::UNetConfig small_unet() {
  model::UNetConfig config;
  config.block_out_channels = {32, 64};
  config.down_block_types = {"CrossAttnDownBlock2D", "DownBlock2D"};
  config.up_block_types = {"UpBlock2D", "CrossAttnUpBlock2D"};
  config.only_cross_attention = {false, false};
  config.layers_per_block = {1, 1};
  config.cross_attention_dim = {16, 16};
  config.transformer_layers_per_block = {{1}, {1}};
  config.num_attention_heads = {4, 4};
  config.norm_num_groups = 8;
  return config;
}

}  // namespace sdtune::test
