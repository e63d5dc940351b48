// What is generated is compared with diffusers in tests/python/test_sampling.py; here is what no image shows.
#include "model/generate/image_generator.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/image/png_write.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

class ImageGeneratorTest : public testing::Test {
 protected:
  SampleRequest request(const GenerateOptions& options) {
    return generator_.make_request(options, *generator_.make_scheduler(options));
  }

  test::ScratchFolder scratch_;
  ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
  ImageGenerator generator_{bundle_};
};

TEST_F(ImageGeneratorTest, TakesTheGuidanceOfTheModelsClass) {
  ModelBundle xl = test::make_tiny_bundle(scratch_, true);
  EXPECT_EQ(generator_.resolved({}).guidance_scale, 7.5);
  EXPECT_EQ(ImageGenerator(xl).resolved({}).guidance_scale, 5.0);
  EXPECT_EQ(request({}).guidance_scale, 7.5);
  GenerateOptions options;
  options.guidance_scale = 1;
  EXPECT_EQ(ImageGenerator(xl).resolved(options).guidance_scale, 1);
}

TEST_F(ImageGeneratorTest, KeepsTheModelsNoiseScheduleUnderAnotherSampler) {
  bundle_.scheduler_config["beta_end"] = 0.02;
  GenerateOptions options;
  EXPECT_EQ(generator_.scheduler_class(options), "DDIMScheduler");
  const torch::Tensor own = generator_.make_scheduler(options)->noise_schedule().alphas_cumprod;
  options.sampler = "euler_a";
  EXPECT_EQ(generator_.scheduler_class(options), "EulerAncestralDiscreteScheduler");
  EXPECT_TRUE(own.equal(generator_.make_scheduler(options)->noise_schedule().alphas_cumprod));
  bundle_.scheduler_config["beta_end"] = 0.03;
  EXPECT_FALSE(own.equal(generator_.make_scheduler(options)->noise_schedule().alphas_cumprod));
}

TEST_F(ImageGeneratorTest, ReadsAnInitImageOnceForRequestsInARow) {
  GenerateOptions options;
  options.init_image =
      scratch_.write("init.png", encode_png({8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 200)})).string();
  const torch::Tensor first = request(options).image;
  std::filesystem::remove(options.init_image);
  EXPECT_TRUE(first.is_same(request(options).image));
  options.width = 4;  // another size is read anew
  EXPECT_THROW(request(options), DataError);
}

TEST_F(ImageGeneratorTest, StatesBothSizesOfASecondPass) {
  GenerateOptions options;
  options.width = 32;
  options.height = 16;
  options.hires_scale = 2;
  const ImageGenerator::Sizes sizes = generator_.sizes(options);
  EXPECT_EQ(sizes.first_pass.width, 32);
  EXPECT_EQ(sizes.first_pass.height, 16);
  EXPECT_EQ(sizes.result.width, 64);
  EXPECT_EQ(sizes.result.height, 32);
  options.width = 31;
  EXPECT_THROW(generator_.sizes(options), ConfigError);
}

}  // namespace
}  // namespace sdtune::model
