#include "train/portrait/detailed/hair_paint.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

double brightness_at(const Identity& who, Vec3 q, std::int64_t r = 2) {
  const Context now = plain_photo();
  return patch(render(who, now, kTestSize), place_of(who, now, q), r).mean;
}

TEST(Hair, StubbleDarkensTheJawAndNothingElse) {
  Identity shaved = plain_person(), stubbly = plain_person();
  shaved.hair_color = stubbly.hair_color = HairColor::kBlack;
  stubbly.stubble = 1;
  const Vec3 jaw{0.20f, -0.68f, 0.60f}, forehead{0.0f, 0.5f, 0.72f};
  EXPECT_LT(brightness_at(stubbly, jaw), brightness_at(shaved, jaw) - 12);
  EXPECT_EQ(brightness_at(stubbly, forehead), brightness_at(shaved, forehead));
}

TEST(Hair, EachBeardDarkensItsOwnPlaces) {
  const FaceMeasures face(plain_person(), plain_photo());
  const Vec3 over_lip{0.10f, face.mouth_y + 0.10f, 0.74f}, chin{0, -0.84f, 0.66f}, cheek{0.42f, -0.45f, 0.45f};
  const auto darkened = [&](FacialHair facial, Vec3 q) {
    Identity plain = plain_person(), bearded = plain_person();
    plain.hair_color = bearded.hair_color = HairColor::kBlack;
    bearded.facial_hair = facial;
    return brightness_at(plain, q, 1) - brightness_at(bearded, q, 1) > 40;
  };
  EXPECT_TRUE(darkened(FacialHair::kMoustache, over_lip));
  EXPECT_FALSE(darkened(FacialHair::kMoustache, chin));
  EXPECT_FALSE(darkened(FacialHair::kGoatee, over_lip));
  EXPECT_TRUE(darkened(FacialHair::kGoatee, chin));
  EXPECT_FALSE(darkened(FacialHair::kGoatee, cheek));
  EXPECT_TRUE(darkened(FacialHair::kBeard, over_lip));
  EXPECT_TRUE(darkened(FacialHair::kBeard, chin));
  EXPECT_TRUE(darkened(FacialHair::kBeard, cheek));
}

// Over the forehead strands run downwards: the brightness changes more from left to right.
TEST(Hair, IsStrandsAndNoSmoothCap) {
  Identity who = plain_person();
  who.hair_style = HairStyle::kLong;
  const Context now = plain_photo();
  const Image image = render(who, now, kTestSize);
  const Place2 at = place_of(who, now, {0, 0.98f, 0.52f});
  double across = 0, along = 0;
  for (std::int64_t y = -2; y <= 2; ++y) {
    for (std::int64_t x = -9; x <= 9; ++x) {
      const auto px = static_cast<std::int64_t>(at.x) + x, py = static_cast<std::int64_t>(at.y) + y;
      const double here = 2 * brightness(image, px, py);
      across += std::abs(here - brightness(image, px - 1, py) - brightness(image, px + 1, py));
      along += std::abs(here - brightness(image, px, py - 1) - brightness(image, px, py + 1));
    }
  }
  EXPECT_GT(across, 1.3 * along);
}

TEST(Hair, TurnsGreyAtTheTemplesWithAge) {
  Identity young = plain_person(), old = plain_person();
  young.hair_color = old.hair_color = HairColor::kBlack;
  young.hair_style = old.hair_style = HairStyle::kShort;
  young.age = 0;
  old.age = 1;
  const Figure first(young, plain_photo()), second(old, plain_photo());
  double at_temple = 0, on_top = 0;
  for (int i = 0; i < 50; ++i) {
    const float shift = 0.006f * static_cast<float>(i);
    const Vec3 temple{0.72f, 0.10f + shift, -shift}, top{shift, 1.1f, 0.1f};
    at_temple += hair_at(second, temple, {1, 0, 0}).albedo.y - hair_at(first, temple, {1, 0, 0}).albedo.y;
    on_top += hair_at(second, top, {0, 1, 0}).albedo.y - hair_at(first, top, {0, 1, 0}).albedo.y;
  }
  EXPECT_GT(at_temple / 50, 0.03);
  EXPECT_LT(on_top, at_temple / 3);
}

}  // namespace
}  // namespace sdtune::train::portrait
