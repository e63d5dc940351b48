#include "train/config/resolve_options.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sdtune::train
