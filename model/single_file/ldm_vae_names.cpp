#include <array>
#include <string>
#include <utility>

#include "model/single_file/ldm_names.h"

namespace sdtune::model {
namespace {

void add_vae_resnet(const std::string& ours, const std::string& ldm, NameTable& table) {
  for (const char* same : {"norm1.", "conv1.", "norm2.", "conv2."}) table.add(ours + same, {ldm + same});
  table.add(ours + "conv_shortcut.", {ldm + "nin_shortcut."});
}

void add_attention(const std::string& ours, const std::string& ldm, NameTable& table) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kLayers = {
      {{"to_q.", "q."}, {"to_k.", "k."}, {"to_v.", "v."}, {"to_out.0.", "proj_out."}}};
  table.add(ours + "group_norm.", {ldm + "norm."});
  for (const auto& [our_layer, ldm_layer] : kLayers) {
    table.add(ours + our_layer + "weight", {ldm + ldm_layer + "weight", StoredForm::kOneByOne});
    table.add(ours + our_layer + "bias", {ldm + ldm_layer + "bias"});
  }
}

// What encoder and decoder have in common.
void add_half(const std::string& half, NameTable& table) {
  table.add(half + "conv_in.", {half + "conv_in."});
  add_vae_resnet(half + "mid_block.resnets.0.", half + "mid.block_1.", table);
  add_attention(half + "mid_block.attentions.0.", half + "mid.attn_1.", table);
  add_vae_resnet(half + "mid_block.resnets.1.", half + "mid.block_2.", table);
  table.add(half + "conv_norm_out.", {half + "norm_out."});
  table.add(half + "conv_out.", {half + "conv_out."});
}

}  // namespace

NameTable ldm_vae_names(const VaeConfig& config) {
  NameTable table;
  table.add("quant_conv.", {"quant_conv."});
  table.add("post_quant_conv.", {"post_quant_conv."});
  add_half("encoder.", table);
  add_half("decoder.", table);
  const std::int64_t levels = config.num_levels();
  for (std::int64_t level = 0; level < levels; ++level) {
    const std::string number = std::to_string(level) + ".";
    const std::string from_the_largest = std::to_string(levels - 1 - level) + ".";
    const std::string down = "encoder.down_blocks." + number, ldm_down = "encoder.down." + number;
    const std::string up = "decoder.up_blocks." + number, ldm_up = "decoder.up." + from_the_largest;
    for (std::int64_t layer = 0; layer <= config.layers_per_block; ++layer) {
      const std::string our_layer = "resnets." + std::to_string(layer) + ".";
      const std::string ldm_layer = "block." + std::to_string(layer) + ".";
      if (layer < config.layers_per_block) add_vae_resnet(down + our_layer, ldm_down + ldm_layer, table);
      add_vae_resnet(up + our_layer, ldm_up + ldm_layer, table);  // the decoder has one more
    }
    table.add(down + "downsamplers.0.conv.", {ldm_down + "downsample.conv."});
    table.add(up + "upsamplers.0.conv.", {ldm_up + "upsample.conv."});
  }
  return table;
}

}  // namespace sdtune::model
