#include "model/unet/unet_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

Json small_unet_config() {
  Json json;
  json["_class_name"] = "UNet2DConditionModel";
  json["_diffusers_version"] = "0.42.1";
  json["block_out_channels"] = {32, 64};
  json["down_block_types"] = {"CrossAttnDownBlock2D", "DownBlock2D"};
  json["up_block_types"] = {"UpBlock2D", "CrossAttnUpBlock2D"};
  json["cross_attention_dim"] = 32;
  json["attention_head_dim"] = 4;
  json["norm_num_groups"] = 8;
  return json;
}

TEST(UNetConfig, ReadsAndWrites) {
  const UNetConfig config = UNetConfig::from_json(small_unet_config(), "unet/config.json");
  EXPECT_EQ(config.num_attention_heads, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(config.time_channels(), 128);
  EXPECT_EQ(UNetConfig::from_json(config.to_json(), "again"), config);
}

struct Refused {
  const char* key;
  Json value;
};
class UNetConfigRefuses : public testing::TestWithParam<Refused> {};

TEST_P(UNetConfigRefuses, NamingFileAndKey) {
  Json json = small_unet_config();
  json[GetParam().key] = GetParam().value;
  try {
    (void)UNetConfig::from_json(json, "unet/config.json");
    FAIL() << "took " << GetParam().key << " = " << GetParam().value.dump();
  } catch (const WeightError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("unet/config.json"));
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().key));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, UNetConfigRefuses,
    testing::Values(Refused{"down_block_types", {"AttnDownBlock2D", "DownBlock2D"}},
                    Refused{"down_block_types", {"DownBlock2D"}},
                    Refused{"up_block_types", {"UpBlock2D", "KUpBlock2D"}},
                    Refused{"mid_block_type", "UNetMidBlock2DSimpleCrossAttn"}, Refused{"no_such_key", 1},
                    Refused{"encoder_hid_dim", 768}, Refused{"class_embed_type", "timestep"},
                    Refused{"num_attention_heads", 8}, Refused{"dual_cross_attention", true}, Refused{"dropout", 0.1},
                    Refused{"resnet_time_scale_shift", "scale_shift"}, Refused{"addition_embed_type", "text"},
                    Refused{"act_fn", "tanh"}, Refused{"norm_num_groups", 7}, Refused{"norm_num_groups", nullptr},
                    Refused{"attention_head_dim", 5}, Refused{"attention_head_dim", {4, 4, 4}},
                    Refused{"attention_head_dim", 0}, Refused{"block_out_channels", Json::array()},
                    Refused{"in_channels", "four"}, Refused{"transformer_layers_per_block", {{1, 2}, 1}},
                    Refused{"transformer_layers_per_block", -1}, Refused{"sample_size", {64, 32}},
                    Refused{"conv_in_kernel", 2}, Refused{"downsample_padding", 2}, Refused{"time_cond_proj_dim", 256},
                    Refused{"_class_name", "UNet2DModel"}));

// What would fill the memory, or overflow a tensor's size, where it were taken.
INSTANTIATE_TEST_SUITE_P(
    HugeNumbers, UNetConfigRefuses,
    testing::Values(Refused{"sample_size", 1000000000}, Refused{"sample_size", -1}, Refused{"sample_size", 0},
                    Refused{"in_channels", 1000000000000}, Refused{"out_channels", 1000000000000},
                    Refused{"block_out_channels", {32, 1000000000000}},
                    Refused{"block_out_channels", std::vector<int>(100, 32)}, Refused{"layers_per_block", 1000000000},
                    Refused{"layers_per_block", 10000000000000000000ULL}, Refused{"cross_attention_dim", 1000000000000},
                    Refused{"attention_head_dim", 1000000000}, Refused{"transformer_layers_per_block", 1000000000},
                    Refused{"transformer_layers_per_block", 18446744073709551615ULL},
                    Refused{"time_embedding_dim", 1000000000000}, Refused{"conv_in_kernel", 1000000001},
                    Refused{"conv_out_kernel", 1000000001}, Refused{"freq_shift", 1000000000000}));

TEST(UNetConfig, CountsTransformerBlocksOfTheWholeModel) {
  Json json = small_unet_config();
  json["layers_per_block"] = 64;
  json["transformer_layers_per_block"] = {16, 15};  // 129 places of each: 3999 blocks
  EXPECT_NO_THROW((void)UNetConfig::from_json(json, "unet/config.json"));
  json["transformer_layers_per_block"] = {16, 16};  // 4128
  EXPECT_THROW((void)UNetConfig::from_json(json, "unet/config.json"), WeightError);
}

// A list for one level of several layers, [1], is one that diffusers cannot read.
TEST(UNetConfig, WritesOneDepthOfALevelAsANumber) {
  Json json = small_unet_config();
  json["transformer_layers_per_block"] = Json::parse("[1, [1, 2]]");
  json["reverse_transformer_layers_per_block"] = Json::parse("[[2, 1, 1], 1]");
  const UNetConfig config = UNetConfig::from_json(json, "unet/config.json");
  const Json written = config.to_json();
  EXPECT_EQ(written.at("transformer_layers_per_block").dump(), "[1,[1,2]]");
  EXPECT_EQ(written.at("reverse_transformer_layers_per_block").dump(), "[[2,1,1],1]");
  EXPECT_EQ(UNetConfig::from_json(written, "again"), config);
}

TEST(UNetConfig, ReadsTheSampleSizeOfOldFilesAsDiffusers) {
  const auto cells = [](const Json& version, const Json& sample_size) {
    Json json = small_unet_config();
    json["_diffusers_version"] = version;
    json["sample_size"] = sample_size;
    return UNetConfig::from_json(json, "unet/config.json").sample_size;
  };
  for (const char* old : {"0.2.2", "0.3", "0.6.0", "0.8.0.dev0"}) {
    EXPECT_EQ(cells(old, 32), 64) << old;
    EXPECT_EQ(cells(old, 96), 96) << old;
    EXPECT_EQ(cells(old, Json()), 0) << old;
  }
  for (const char* later : {"0.9.0", "0.9.0.dev0", "0.10.2", "0.42.1", "1.0.0", "", "0."}) {
    EXPECT_EQ(cells(later, 32), 32) << later;
  }
  EXPECT_EQ(cells(Json(), 32), 32);
}

TEST(UNetConfig, TakesSdxl) {
  Json json = small_unet_config();
  json["sample_size"] = 128;
  json["block_out_channels"] = {320, 640, 1280};
  json["norm_num_groups"] = 32;
  json["down_block_types"] = {"DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"};
  json["up_block_types"] = {"CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"};
  json["cross_attention_dim"] = 2048;
  json["attention_head_dim"] = {5, 10, 20};
  json["transformer_layers_per_block"] = {1, 2, 10};
  json["addition_embed_type"] = "text_time";
  json["addition_time_embed_dim"] = 256;
  json["projection_class_embeddings_input_dim"] = 2816;
  EXPECT_NO_THROW((void)UNetConfig::from_json(json, "unet/config.json"));
  json["projection_class_embeddings_input_dim"] = 1000000000000;
  EXPECT_THROW((void)UNetConfig::from_json(json, "unet/config.json"), WeightError);
}

}  // namespace
}  // namespace sdtune::model
