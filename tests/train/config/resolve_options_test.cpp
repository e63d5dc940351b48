#include "train/config/resolve_options.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

constexpr BaseDefaults kXl = {1024, 5};

TrainConfig resolved(const BaseDefaults& base, std::optional<double> given, const std::string& recorded = "") {
  TrainConfig config;
  config.data.images = "me";
  config.data.class_guidance_scale = given;
  resolve_options(config, base, recorded);
  return config;
}

TEST(ResolveOptions, TakesFromTheBaseWhatIsNotGiven) {
  const TrainConfig config = resolved(kXl, {});
  EXPECT_EQ(config.data.resolution, 1024);
  EXPECT_EQ(config.data.class_guidance_scale, 5);
  EXPECT_EQ(config.origins.at("class_guidance_scale"), "the base");
  EXPECT_EQ(config.data.class_data_dir, "runs/me/class_images");
  EXPECT_EQ(resolved({512, 7.5}, {}).data.class_guidance_scale, 7.5);
}

TEST(ResolveOptions, KeepsWhatIsGiven) {
  EXPECT_EQ(resolved(kXl, 3).data.class_guidance_scale, 3);
  EXPECT_EQ(resolved(kXl, 3, "7.5").data.class_guidance_scale, 3);
  EXPECT_FALSE(resolved(kXl, 3).origins.contains("class_guidance_scale"));
}

// Any other recorded value was an option of the first call, and the fingerprint asks for it again.
TEST(ResolveOptions, KeepsTheFormerDefaultOfARunThatBeganWithIt) {
  const TrainConfig config = resolved(kXl, {}, "7.5");
  EXPECT_EQ(config.data.class_guidance_scale, 7.5);
  EXPECT_EQ(config.origins.at("class_guidance_scale"), "the checkpoint");
  EXPECT_EQ(resolved(kXl, {}, "4").data.class_guidance_scale, 5);
}

// The error's line where that many ranks of that train_batch_size resume a checkpoint of an effective batch.
std::string refusal(std::int64_t ranks, std::int64_t each, std::int64_t effective_batch) {
  TrainConfig config;
  config.run.train_batch_size = each;
  try {
    keep_effective_batch(config, ranks, effective_batch);
  } catch (const ConfigError& error) {
    return error.problems().front().line();
  }
  return "accumulation " + std::to_string(config.run.gradient_accumulation_steps);
}

TEST(KeepEffectiveBatch, TakesTheAccumulationThatFitsTheRanks) {
  EXPECT_EQ(refusal(1, 1, 4), "accumulation 4");
  EXPECT_EQ(refusal(2, 1, 4), "accumulation 2");
  EXPECT_EQ(refusal(4, 1, 4), "accumulation 1");
}

TEST(KeepEffectiveBatch, NamesWhatWouldFitWhereNothingDoes) {
  const std::string three = refusal(3, 1, 4);
  EXPECT_NE(three.find("effective batch of 4, which 3 ranks of train_batch_size 1 cannot make"), std::string::npos);
  EXPECT_NE(three.find("2 ranks with gradient_accumulation_steps 2"), std::string::npos) << three;
  EXPECT_NE(three.find("4 ranks with gradient_accumulation_steps 1"), std::string::npos) << three;
  const std::string large = refusal(2, 3, 4);
  EXPECT_NE(large.find("train_batch_size 2 with gradient_accumulation_steps 1"), std::string::npos) << large;
}

}  // namespace
}  // namespace sdtune::train
