#include "model/generate/init_image.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "model/image/png_write.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

// Of 16 px, whose VAE halves once: sizes are even.
class InitImage : public testing::Test {
 protected:
  std::filesystem::path image(std::int64_t width, std::int64_t height) {
    Image made{width, height, {}};
    for (std::int64_t i = 0; i < width * height * 3; ++i) made.rgb.push_back(static_cast<std::uint8_t>(i * i / 7));
    return scratch_.write("init.png", encode_png(made));
  }
  torch::Tensor read(std::optional<std::int64_t> width = {}, std::optional<std::int64_t> height = {}) {
    return read_init_image({scratch_.path() / "init.png", width, height}, bundle_);
  }

  test::ScratchFolder scratch_;
  ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
};

TEST_F(InitImage, HasTheSizeThatIsAskedForOrTheModels) {
  struct Case {
    std::int64_t width, height;  // of the file
    std::optional<std::int64_t> asked_width, asked_height;
    std::int64_t height_after, width_after;
  };
  const Case cases[] = {
      {64, 64, {}, {}, 16, 16},   // down to the model's number of pixels
      {128, 32, {}, {}, 8, 32},   // with its proportions
      {10, 6, {}, {}, 6, 10},     // a smaller one stays
      {11, 7, {}, {}, 6, 10},     // but for whole latent cells
      {64, 32, 20, {}, 10, 20},   // the other side follows
      {64, 32, {}, 20, 20, 40},   //
      {64, 32, 22, 18, 18, 22},   // both: whatever the proportions
      {1000, 1, {}, {}, 2, 504},  // never less than a cell
  };
  for (const Case& one : cases) {
    image(one.width, one.height);
    EXPECT_EQ(read(one.asked_width, one.asked_height).sizes(),
              torch::IntArrayRef({1, 3, one.height_after, one.width_after}))
        << one.width << "x" << one.height;
  }
}

TEST_F(InitImage, IsNotResampledAtItsOwnSize) {
  image(10, 6);
  const torch::Tensor values = ((read()[0].permute({1, 2, 0}) + 1) * 127.5).round().to(torch::kUInt8);
  EXPECT_EQ(bytes_to_image(values).rgb[50], static_cast<std::uint8_t>(50 * 50 / 7));
}

TEST_F(InitImage, ThatIsMissingIsNamed) {
  EXPECT_THROW(read(), DataError);
}

}  // namespace
}  // namespace sdtune::model
