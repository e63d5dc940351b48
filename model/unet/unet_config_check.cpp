#include "model/unet/unet_config_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/nn/model_limits.h"

namespace sdtune::model {
namespace {

using Names = std::vector<std::string>;

void check_names(const JsonObject& object, const std::string& key, const Names& names, const Names& allowed) {
  for (const std::string& name : names) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const std::string list = fmt::format("{}", fmt::join(allowed, ", "));
    object.fail(key, "not supported (got " + name + "; allowed: " + list + ")");
  }
}

void check_length(const JsonObject& object, const std::string& key, size_t length, int64_t levels) {
  if (static_cast<int64_t>(length) != levels) {
    object.fail(key, "has " + std::to_string(length) + " entries where block_out_channels has " +
                         std::to_string(levels) + " levels");
  }
}

void check_each(const JsonObject& object, const std::string& key, const std::vector<int64_t>& values, int64_t max) {
  for (const int64_t value : values) object.check_range(key, value, 1, max);
}

// Layers and depths that are each allowed could still make millions of modules together.
void check_block_count(const JsonObject& object, const UNetConfig& config) {
  const auto deepest = [](const std::vector<int64_t>& depths) {
    return *std::max_element(depths.begin(), depths.end());
  };
  const int64_t levels = config.num_levels();
  const bool mirrored = config.reverse_transformer_layers_per_block.empty();
  int64_t blocks = 0;
  for (int64_t level = 0; level < levels; ++level) {
    const std::vector<int64_t>& down = config.transformer_layers_per_block[level];
    const std::vector<int64_t>& up = mirrored ? down : config.reverse_transformer_layers_per_block[levels - 1 - level];
    blocks += config.layers_per_block[level] * deepest(down) + (config.layers_per_block[level] + 1) * deepest(up);
  }
  if (blocks > kMaxTransformerBlocks) {
    object.fail("transformer_layers_per_block", "makes too many blocks with layers_per_block (got " +
                                                    std::to_string(blocks) + "; allowed: up to " +
                                                    std::to_string(kMaxTransformerBlocks) + ")");
  }
}

void check_divides(const JsonObject& object, const std::string& key, int64_t whole, int64_t parts) {
  if (whole % parts != 0) {
    object.fail(key, std::to_string(whole) + " channels do not divide by it (got " + std::to_string(parts) + ")");
  }
}

void check_depths(const JsonObject& object, const UNetConfig& config) {
  const std::string key = "transformer_layers_per_block";
  const int64_t levels = config.num_levels();
  check_length(object, key, config.transformer_layers_per_block.size(), levels);
  const bool mirrored = config.reverse_transformer_layers_per_block.empty();
  if (!mirrored) check_length(object, "reverse_" + key, config.reverse_transformer_layers_per_block.size(), levels);
  for (int64_t level = 0; level < levels; ++level) {
    const auto down = static_cast<int64_t>(config.transformer_layers_per_block[level].size());
    if (down > 1 && mirrored) object.fail(key, "lists inside it need reverse_transformer_layers_per_block as well");
    if (down != 1 && down != config.layers_per_block[level]) {
      object.fail(key, "a list inside it needs an entry a layer (got " + std::to_string(down) + ")");
    }
    if (mirrored) continue;
    const auto up = static_cast<int64_t>(config.reverse_transformer_layers_per_block[level].size());
    if (up != 1 && up != config.layers_per_block[levels - 1 - level] + 1) {
      object.fail("reverse_" + key, "a list inside it needs an entry a layer (got " + std::to_string(up) + ")");
    }
  }
}

void check_channels(const JsonObject& object, const UNetConfig& config) {
  object.check_range("norm_num_groups", config.norm_num_groups, 1, kMaxChannels);
  const int64_t levels = config.num_levels();
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t channels = config.block_out_channels[level];
    check_divides(object, "norm_num_groups", channels, config.norm_num_groups);
    const bool in_middle = level + 1 == levels && config.mid_block_type == "UNetMidBlock2DCrossAttn";
    if (in_middle || config.has_attention(config.down_block_types[level]) ||
        config.has_attention(config.up_block_types[levels - 1 - level])) {
      check_divides(object, "attention_head_dim", channels, config.num_attention_heads[level]);
    }
  }
  if (config.block_out_channels.front() % 2 != 0) {
    object.fail("block_out_channels", "the first must be even, for sines and cosines of the timestep");
  }
}

}  // namespace

void check_unet_config(const UNetConfig& config, const JsonObject& object) {
  const int64_t levels = config.num_levels();
  check_names(object, "down_block_types", config.down_block_types, {"CrossAttnDownBlock2D", "DownBlock2D"});
  check_names(object, "up_block_types", config.up_block_types, {"CrossAttnUpBlock2D", "UpBlock2D"});
  check_names(object, "mid_block_type", {config.mid_block_type}, {"UNetMidBlock2DCrossAttn", "UNetMidBlock2D", ""});
  check_length(object, "down_block_types", config.down_block_types.size(), levels);
  check_length(object, "up_block_types", config.up_block_types.size(), levels);
  check_length(object, "only_cross_attention", config.only_cross_attention.size(), levels);
  check_length(object, "layers_per_block", config.layers_per_block.size(), levels);
  check_length(object, "cross_attention_dim", config.cross_attention_dim.size(), levels);
  check_length(object, "attention_head_dim", config.num_attention_heads.size(), levels);
  check_each(object, "block_out_channels", config.block_out_channels, kMaxChannels);
  check_each(object, "layers_per_block", config.layers_per_block, kMaxLayersPerBlock);
  check_each(object, "cross_attention_dim", config.cross_attention_dim, kMaxWidth);
  check_each(object, "attention_head_dim", config.num_attention_heads, kMaxChannels);
  object.check_range("in_channels", config.in_channels, 1, kMaxChannels);
  object.check_range("out_channels", config.out_channels, 1, kMaxChannels);
  object.check_range("time_embedding_dim", config.time_embedding_dim, 0, 4 * kMaxChannels);
  object.check_range("freq_shift", config.freq_shift, -kMaxWidth, kMaxWidth);
  check_channels(object, config);
  check_depths(object, config);
  check_block_count(object, config);
  for (const auto& [key, kernel] :
       {std::pair{"conv_in_kernel", config.conv_in_kernel}, std::pair{"conv_out_kernel", config.conv_out_kernel}}) {
    object.check_range(key, kernel, 1, kMaxKernel);
    if (kernel % 2 == 0) object.fail(key, "must be odd (got " + std::to_string(kernel) + ")");
  }
  if (config.downsample_padding < 0 || config.downsample_padding > 1) {
    object.fail("downsample_padding",
                "not supported (got " + std::to_string(config.downsample_padding) + "; allowed: 0, 1)");
  }
  if (config.text_time) {
    object.check_range("addition_time_embed_dim", config.addition_time_embed_dim, 1, kMaxWidth);
    object.check_range("projection_class_embeddings_input_dim", config.projection_class_embeddings_input_dim, 1,
                       kMaxWidth);
    if (config.addition_time_embed_dim % 2 != 0) object.fail("addition_time_embed_dim", "must be even");
  }
}

}  // namespace sdtune::model
