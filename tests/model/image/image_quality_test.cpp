#include "model/image/image_quality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.h"
#include "model/image/resample.h"

namespace sdtune::model {
namespace {

// An image of some soft shapes with a fine pattern on them.
Image scene(std::int64_t width, std::int64_t height, double phase) {
  Image image{width, height, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const double u = static_cast<double>(x) / static_cast<double>(width);
      const double v = static_cast<double>(y) / static_cast<double>(height);
      const double soft = std::sin(7 * u + phase) * std::cos(9 * v * phase) + std::sin(23 * u * v + phase * phase);
      const double fine = (x / 2 + y / 2) % 2 == 0 ? 12 : -12;
      for (int c = 0; c < 3; ++c) {
        image.rgb.push_back(static_cast<std::uint8_t>(std::clamp(128 + 45 * soft + fine + 10 * c, 0.0, 255.0)));
      }
    }
  }
  return image;
}

TEST(ImageQuality, CopiesAreNearAndOthersFar) {
  const Image image = scene(400, 300, 1.0);
  const ImageQuality signs = image_signs(image);
  EXPECT_LE(hash_distance(signs, image_signs(resized(image, 200, 150, Filter::kLanczos))), 16);
  Image brighter = image;
  for (std::uint8_t& value : brighter.rgb) value = static_cast<std::uint8_t>(std::min(255, value * 11 / 10));
  EXPECT_LE(hash_distance(signs, image_signs(brighter)), 16);
  EXPECT_GE(hash_distance(signs, image_signs(scene(400, 300, 2.1))), 70);
  EXPECT_EQ(hash_distance(signs, signs), 0);
}

TEST(ImageQuality, BlurTakesTheSharpness) {
  const Image image = scene(480, 360, 1.0);
  // Made small and large again: nothing finer than 8 px is left.
  const Image blurred = resized(resized(image, 60, 45, Filter::kBilinear), 480, 360, Filter::kBicubic);
  EXPECT_GT(image_signs(image).sharpness, 0.1);
  EXPECT_LT(image_signs(blurred).sharpness, 0.05);
}

TEST(ImageQuality, GreyHasNoSaturation) {
  Image grey = scene(64, 64, 1.0);
  EXPECT_GT(image_signs(grey).saturation, 0.02);
  for (std::size_t i = 0; i < grey.rgb.size(); ++i) grey.rgb[i] = grey.rgb[i / 3 * 3];
  EXPECT_EQ(image_signs(grey).saturation, 0);
  EXPECT_THROW(image_signs(Image()), DataError);
}

TEST(ImageQuality, TinyImagesAreMeasuredToo) {
  EXPECT_NO_THROW(image_signs(scene(1, 1, 1.0)));
  EXPECT_NO_THROW(image_signs(scene(3, 5, 1.0)));
}

}  // namespace
}  // namespace sdtune::model
