#include "model/image/crop.h"

#include <gtest/gtest.h>

#include "model/base/error.h"

namespace sdtune::model {
namespace {

Image numbered(std::int64_t width, std::int64_t height) {
  Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height * 3; ++i) image.rgb.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  return image;
}

TEST(Crop, ShorterSideBecomesTheSquareAndTheLongerIsTruncated) {
  const CropPlan wide = center_crop(1000, 333, 64);
  EXPECT_EQ(wide.resized_height, 64);
  EXPECT_EQ(wide.resized_width, 192);  // 192.19
  EXPECT_EQ(wide.left, 64);
  EXPECT_EQ(wide.top, 0);
  const CropPlan tall = center_crop(333, 1000, 64);
  EXPECT_EQ(tall.resized_width, 64);
  EXPECT_EQ(tall.top, 64);
}

TEST(Crop, HalfPixelsRoundToEven) {
  EXPECT_EQ(center_crop(33, 32, 32).left, 0);  // 0.5
  EXPECT_EQ(center_crop(35, 32, 32).left, 2);  // 1.5
  EXPECT_EQ(center_crop(37, 32, 32).left, 2);  // 2.5
}

TEST(Crop, TakesTheSquareAtItsCorner) {
  const Image photo = numbered(6, 4);
  CropPlan plan = center_crop(6, 4, 4);
  plan.left = 2;
  const Image square = cropped(photo, plan, Filter::kBilinear);
  ASSERT_EQ(square.rgb.size(), 48u);
  for (std::int64_t y = 0; y < 4; ++y) {
    for (std::int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(square.rgb[static_cast<std::size_t>(y * 12 + i)], photo.rgb[static_cast<std::size_t>(y * 18 + 6 + i)]);
    }
  }
}

TEST(Crop, CoversARectangle) {
  const CropPlan plan = center_crop(1000, 750, 448, 576);
  EXPECT_EQ(plan.resized_width, 768);
  EXPECT_EQ(plan.resized_height, 576);
  EXPECT_EQ(plan.left, 160);
  EXPECT_EQ(plan.top, 0);
  for (std::int64_t width = 1; width < 90; ++width) {
    for (std::int64_t height = 1; height < 90; ++height) {
      const CropPlan any = center_crop(width, height, 24, 40);
      EXPECT_TRUE(any.resized_width == 24 || any.resized_height == 40);
      EXPECT_GE(any.free_columns(), 1);
      EXPECT_GE(any.free_rows(), 1);
    }
  }
}

TEST(Crop, MovesTowardsABoxAsFarAsThePhotoReaches) {
  const CropPlan middle = center_crop(1000, 500, 100);  // 200 x 100
  EXPECT_EQ(centered_on(middle, 1000, 500, {600, 100, 100, 100}).left, 80);
  EXPECT_EQ(centered_on(middle, 1000, 500, {950, 100, 50, 100}).left, 100);
  EXPECT_EQ(centered_on(middle, 1000, 500, {0, 0, 10, 10}).left, 0);
  EXPECT_EQ(centered_on(middle, 1000, 500, {0, 0, 10, 10}).top, 0);
  const ImageBox right{900, 200, 90, 90};
  EXPECT_FALSE(shows(middle, 1000, 500, right));
  EXPECT_TRUE(shows(centered_on(middle, 1000, 500, right), 1000, 500, right));
}

TEST(Crop, RefusesASquareOutsideOfTheImage) {
  CropPlan plan = center_crop(6, 4, 4);
  EXPECT_EQ(plan.free_columns(), 3);
  EXPECT_EQ(plan.free_rows(), 1);
  plan.left = 3;
  EXPECT_THROW(cropped(numbered(6, 4), plan, Filter::kBilinear), DataError);
  EXPECT_THROW(center_crop(0, 4, 4), DataError);
}

}  // namespace
}  // namespace sdtune::model
