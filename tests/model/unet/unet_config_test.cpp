#include "model/unet/unet_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

Json small() {
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
  const UNetConfig config = UNetConfig::from_json(small(), "unet/config.json");
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
  Json json = small();
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

}  // namespace
}  // namespace sdtune::model
