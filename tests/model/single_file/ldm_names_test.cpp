#include "model/single_file/ldm_names.h"

#include <gtest/gtest.h>

#include <set>

#include "model/clip/text_encoder.h"
#include "model/nn/initial_values.h"
#include "model/unet/unet.h"
#include "model/vae/autoencoder_kl.h"

namespace sdtune::model {
namespace {

UNetConfig sdxl_unet() {
  UNetConfig config;
  config.down_block_types = {"DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"};
  config.up_block_types = {"CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"};
  config.block_out_channels = {320, 640, 1280};
  config.layers_per_block = {2, 2, 2};
  return config;
}

TEST(LdmUNetNames, AreThoseOfThePublishedFiles) {
  const NameTable sd1 = ldm_unet_names(UNetConfig());
  const auto name = [&](const char* ours) { return sd1.ldm_name(ours).name; };
  EXPECT_EQ(name("conv_in.weight"), "input_blocks.0.0.weight");
  EXPECT_EQ(name("time_embedding.linear_2.bias"), "time_embed.2.bias");
  EXPECT_EQ(name("down_blocks.0.resnets.0.norm1.weight"), "input_blocks.1.0.in_layers.0.weight");
  EXPECT_EQ(name("down_blocks.2.downsamplers.0.conv.bias"), "input_blocks.9.0.op.bias");
  EXPECT_EQ(name("down_blocks.3.resnets.1.conv2.weight"), "input_blocks.11.0.out_layers.3.weight");
  EXPECT_EQ(name("down_blocks.1.attentions.1.transformer_blocks.0.attn2.to_k.weight"),
            "input_blocks.5.1.transformer_blocks.0.attn2.to_k.weight");
  EXPECT_EQ(name("mid_block.resnets.1.time_emb_proj.weight"), "middle_block.2.emb_layers.1.weight");
  EXPECT_EQ(name("up_blocks.0.upsamplers.0.conv.weight"), "output_blocks.2.1.conv.weight");
  EXPECT_EQ(name("up_blocks.1.upsamplers.0.conv.weight"), "output_blocks.5.2.conv.weight");
  EXPECT_EQ(name("up_blocks.3.resnets.2.conv_shortcut.weight"), "output_blocks.11.0.skip_connection.weight");
  const NameTable sdxl = ldm_unet_names(sdxl_unet());
  EXPECT_EQ(sdxl.ldm_name("up_blocks.0.upsamplers.0.conv.bias").name, "output_blocks.2.2.conv.bias");
  EXPECT_EQ(sdxl.ldm_name("down_blocks.2.attentions.1.transformer_blocks.9.ff.net.2.bias").name,
            "input_blocks.8.1.transformer_blocks.9.ff.net.2.bias");
  EXPECT_EQ(sdxl.ldm_name("add_embedding.linear_1.weight").name, "label_emb.0.0.weight");
}

TEST(LdmUNetNames, CountThroughLevelsOfDifferentDepth) {
  UNetConfig config = sdxl_unet();
  config.layers_per_block = {1, 3, 2};
  const NameTable table = ldm_unet_names(config);
  EXPECT_EQ(table.ldm_name("down_blocks.1.resnets.2.conv1.bias").name, "input_blocks.5.0.in_layers.2.bias");
  EXPECT_EQ(table.ldm_name("down_blocks.2.resnets.0.conv1.bias").name, "input_blocks.7.0.in_layers.2.bias");
  EXPECT_EQ(table.ldm_name("up_blocks.1.resnets.0.conv1.bias").name, "output_blocks.3.0.in_layers.2.bias");
  EXPECT_EQ(table.ldm_name("up_blocks.2.resnets.1.conv1.bias").name, "output_blocks.8.0.in_layers.2.bias");
}

TEST(LdmVaeNames, ReverseTheDecoderAndUnsqueezeTheAttention) {
  VaeConfig config;
  config.block_out_channels = {128, 256, 512, 512};
  config.layers_per_block = 2;
  const NameTable table = ldm_vae_names(config);
  const auto name = [&](const char* ours) { return table.ldm_name(ours).name; };
  EXPECT_EQ(name("encoder.down_blocks.1.resnets.0.conv_shortcut.bias"), "encoder.down.1.block.0.nin_shortcut.bias");
  EXPECT_EQ(name("decoder.up_blocks.0.resnets.2.norm1.bias"), "decoder.up.3.block.2.norm1.bias");
  EXPECT_EQ(name("decoder.up_blocks.2.upsamplers.0.conv.weight"), "decoder.up.1.upsample.conv.weight");
  EXPECT_EQ(name("decoder.mid_block.resnets.1.conv2.weight"), "decoder.mid.block_2.conv2.weight");
  EXPECT_EQ(name("decoder.conv_norm_out.weight"), "decoder.norm_out.weight");
  const LdmName key = table.ldm_name("encoder.mid_block.attentions.0.to_k.weight");
  EXPECT_EQ(key.name, "encoder.mid.attn_1.k.weight");
  EXPECT_EQ(key.form, StoredForm::kOneByOne);
  EXPECT_EQ(table.ldm_name("encoder.mid_block.attentions.0.to_out.0.bias").form, StoredForm::kSame);
}

TEST(OpenClipNames, StackQueryKeyAndValueAndTransposeTheProjection) {
  const NameTable table = open_clip_names(ClipTextConfig());
  const LdmName value = table.ldm_name("text_model.encoder.layers.11.self_attn.v_proj.bias");
  EXPECT_EQ(value.name, "transformer.resblocks.11.attn.in_proj_bias");
  EXPECT_EQ(value.form, StoredForm::kStacked);
  EXPECT_EQ(value.third, 2);
  const LdmName projection = table.ldm_name("text_projection.weight");
  EXPECT_EQ(projection.form, StoredForm::kTransposed);
  EXPECT_EQ(table.ldm_name("text_model.embeddings.position_embedding.weight").name, "positional_embedding");
  const torch::Tensor stack = torch::arange(12).reshape({6, 2});
  EXPECT_TRUE(torch::equal(from_stored(stack, value), stack.slice(0, 4, 6)));
  EXPECT_TRUE(torch::equal(from_stored(to_stored(stack, StoredForm::kTransposed), projection), stack));
}

// Every parameter has a name of its own; three share that of a stack.
void expect_distinct(const torch::nn::Module& module, const NameTable& table) {
  std::set<std::string> names;
  std::int64_t stacked = 0;
  for (const auto& item : module.named_parameters()) {
    const LdmName name = table.ldm_name(item.key());
    stacked += name.form == StoredForm::kStacked ? 1 : 0;
    const bool is_new = names.insert(name.name).second;
    EXPECT_TRUE(is_new || name.form == StoredForm::kStacked) << item.key();
  }
  EXPECT_EQ(std::ssize(names), std::ssize(module.parameters()) - stacked / 3 * 2);
}

TEST(LdmNames, AreDistinctForModelsOfThePublishedSize) {
  const WithoutInitialValues untouched;  // memory that is never written costs nothing
  UNetConfig unet;
  unet.cross_attention_dim.assign(4, 768);
  expect_distinct(*UNet2DConditionModel(unet), ldm_unet_names(unet));
  VaeConfig vae;
  vae.block_out_channels = {128, 256, 512, 512};
  vae.layers_per_block = 2;
  expect_distinct(*AutoencoderKL(vae), ldm_vae_names(vae));
  ClipTextConfig text;
  text.with_projection = true;
  expect_distinct(*CLIPTextModel(text), open_clip_names(text));
  expect_distinct(*CLIPTextModel(text), clip_names());
}

}  // namespace
}  // namespace sdtune::model
