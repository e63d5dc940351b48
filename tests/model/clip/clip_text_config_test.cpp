#include "model/clip/clip_text_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClipTextConfig, ReadsAndWrites) {
  const ClipTextConfig config = ClipTextConfig::from_json({{"hidden_size", 768}, {"num_attention_heads", 12}}, "c");
  EXPECT_EQ(config.hidden_size, 768);
  EXPECT_EQ(ClipTextConfig::from_json(config.to_json(), "again"), config);
}

// OpenCLIP bigG, the largest text encoder of Stable Diffusion, is far from every bound.
TEST(ClipTextConfig, TakesTheLargestEncoderThatIsPublished) {
  const Json json = {{"architectures", {"CLIPTextModelWithProjection"}},
                     {"hidden_size", 1280},
                     {"intermediate_size", 5120},
                     {"num_attention_heads", 20},
                     {"num_hidden_layers", 32},
                     {"projection_dim", 1280}};
  EXPECT_NO_THROW((void)ClipTextConfig::from_json(json, "c"));
}

TEST(ClipTextConfig, RefusesHugeNumbersNamingFileAndKey) {
  const std::vector<std::pair<const char*, Json>> faults = {
      {"vocab_size", 1000000000000},         {"hidden_size", 1000000000000}, {"intermediate_size", 1000000000000},
      {"num_hidden_layers", 10000000},       {"num_hidden_layers", 0},       {"num_attention_heads", 1000000000},
      {"max_position_embeddings", 10000000}, {"projection_dim", 1000000000}, {"projection_dim", -1}};
  for (const auto& [key, value] : faults) {
    try {
      (void)ClipTextConfig::from_json({{key, value}}, "text_encoder/config.json");
      ADD_FAILURE() << "took " << key << " = " << value.dump();
    } catch (const WeightError& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("text_encoder/config.json: "), HasSubstr(key), HasSubstr("got " + value.dump())));
    }
  }
}

}  // namespace
}  // namespace sdtune::model
