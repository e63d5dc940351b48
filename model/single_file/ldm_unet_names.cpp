#include <string>

#include "model/single_file/ldm_names.h"

namespace sdtune::model {
namespace {

void add_resnet(const std::string& ours, const std::string& ldm, NameTable& table) {
  table.add(ours + "norm1.", {ldm + "in_layers.0."});
  table.add(ours + "conv1.", {ldm + "in_layers.2."});
  table.add(ours + "time_emb_proj.", {ldm + "emb_layers.1."});
  table.add(ours + "norm2.", {ldm + "out_layers.0."});
  table.add(ours + "conv2.", {ldm + "out_layers.3."});
  table.add(ours + "conv_shortcut.", {ldm + "skip_connection."});
}

std::string numbered(const char* before, std::int64_t number) {
  return before + std::to_string(number) + ".";
}

// A resnet and the transformer behind it.
void add_layer(const std::string& block, std::int64_t layer, const std::string& ldm, NameTable& table) {
  add_resnet(block + numbered("resnets.", layer), ldm + "0.", table);
  table.add(block + numbered("attentions.", layer), {ldm + "1."});
}

void add_down_blocks(const UNetConfig& config, NameTable& table) {
  std::int64_t number = 1;  // input_blocks.0 is conv_in
  for (std::int64_t level = 0; level < config.num_levels(); ++level) {
    const std::string block = numbered("down_blocks.", level);
    for (std::int64_t layer = 0; layer < config.layers_per_block[static_cast<std::size_t>(level)]; ++layer) {
      add_layer(block, layer, numbered("input_blocks.", number++), table);
    }
    if (level + 1 < config.num_levels()) {
      table.add(block + "downsamplers.0.conv.", {numbered("input_blocks.", number++) + "0.op."});
    }
  }
}

void add_up_blocks(const UNetConfig& config, NameTable& table) {
  std::int64_t number = 0;
  for (std::int64_t position = 0; position < config.num_levels(); ++position) {
    const std::string block = numbered("up_blocks.", position);
    const std::int64_t level = config.num_levels() - 1 - position;
    for (std::int64_t layer = 0; layer <= config.layers_per_block[static_cast<std::size_t>(level)]; ++layer) {
      add_layer(block, layer, numbered("output_blocks.", number++), table);
    }
    if (position + 1 < config.num_levels()) {
      const bool attends = config.has_attention(config.up_block_types[static_cast<std::size_t>(position)]);
      table.add(block + "upsamplers.0.conv.",
                {numbered("output_blocks.", number - 1) + (attends ? "2.conv." : "1.conv.")});
    }
  }
}

}  // namespace

NameTable ldm_unet_names(const UNetConfig& config) {
  NameTable table;
  table.add("time_embedding.linear_1.", {"time_embed.0."});
  table.add("time_embedding.linear_2.", {"time_embed.2."});
  table.add("add_embedding.linear_1.", {"label_emb.0.0."});
  table.add("add_embedding.linear_2.", {"label_emb.0.2."});
  table.add("conv_in.", {"input_blocks.0.0."});
  table.add("conv_norm_out.", {"out.0."});
  table.add("conv_out.", {"out.2."});
  add_down_blocks(config, table);
  add_resnet("mid_block.resnets.0.", "middle_block.0.", table);
  table.add("mid_block.attentions.0.", {"middle_block.1."});
  add_resnet("mid_block.resnets.1.", "middle_block.2.", table);
  add_up_blocks(config, table);
  return table;
}

}  // namespace sdtune::model
