#include "model/vae/vae_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

Json small_config() {
  Json json;
  json["_class_name"] = "AutoencoderKL";
  json["block_out_channels"] = {16, 32};
  json["down_block_types"] = {"DownEncoderBlock2D", "DownEncoderBlock2D"};
  json["up_block_types"] = {"UpDecoderBlock2D", "UpDecoderBlock2D"};
  json["norm_num_groups"] = 8;
  json["shift_factor"] = 0.5;
  return json;
}

TEST(VaeConfig, ReadsAndWrites) {
  const VaeConfig config = VaeConfig::from_json(small_config(), "vae/config.json");
  EXPECT_EQ(config.downscale(), 2);
  EXPECT_EQ(config.shift_factor, 0.5);
  EXPECT_EQ(VaeConfig::from_json(config.to_json(), "again"), config);
}

TEST(VaeConfig, RefusesNamingFileAndKey) {
  const std::vector<std::pair<const char*, Json>> faults = {{"down_block_types", {"AttnDownEncoderBlock2D", "x"}},
                                                            {"up_block_types", {"UpDecoderBlock2D"}},
                                                            {"act_fn", "tanh"},
                                                            {"norm_num_groups", 5},
                                                            {"latent_channels", 0},
                                                            {"latents_mean", {0.0}},
                                                            {"scaling_factor", -1.0},
                                                            {"surprise", true},
                                                            {"in_channels", 1000000000000},
                                                            {"out_channels", 1000000000000},
                                                            {"latent_channels", 1000000000000},
                                                            {"layers_per_block", 1000000000},
                                                            {"sample_size", 1000000000},
                                                            {"sample_size", -8},
                                                            {"block_out_channels", {16, 1000000000000}},
                                                            {"block_out_channels", std::vector<int>(70, 16)},
                                                            {"_class_name", "AutoencoderTiny"}};
  for (const auto& [key, value] : faults) {
    Json json = small_config();
    json[key] = value;
    try {
      (void)VaeConfig::from_json(json, "vae/config.json");
      ADD_FAILURE() << "took " << key << " = " << value.dump();
    } catch (const WeightError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("vae/config.json"), testing::HasSubstr(key)));
    }
  }
}

}  // namespace
}  // namespace sdtune::model
