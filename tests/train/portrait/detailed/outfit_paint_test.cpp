#include "train/portrait/detailed/outfit_paint.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

TEST(Outfit, ClearGlassReflectsAndSunglassesHideTheEyes) {
  Context now = plain_photo();
  const auto reflection = [&](Glasses glasses) {
    now.glasses = glasses;
    const Figure figure(plain_person(), now);
    float brightest = 0;
    for (int i = -20; i <= 20; ++i) {
      const Vec3 q{figure.face().eye_x + 0.01f * static_cast<float>(i), 0.10f, 0.6f};
      brightest = most(brightest, glass_reflection(figure, q).y);
    }
    return brightest;
  };
  EXPECT_EQ(reflection(Glasses::kNone), 0);
  EXPECT_GT(reflection(Glasses::kRound), 0.05f);
  EXPECT_GT(reflection(Glasses::kSquare), 0.05f);
  const Identity who = plain_person();
  now.glasses = Glasses::kNone;
  const Vec3 eye{FaceMeasures(who, now).eye_x, 0.04f, 0.64f};
  const Image bare = render(who, now, kTestSize);
  now.glasses = Glasses::kSunglasses;
  const Image shaded = render(who, now, kTestSize);
  EXPECT_LT(patch(shaded, place_of(who, now, eye), 3).mean, 0.7 * patch(bare, place_of(who, now, eye), 3).mean);
}

// Colours are labels: red clothes are red, whatever their folds.
TEST(Outfit, ClothesHaveTheColorOfTheirLabel) {
  for (int clothes = 0; clothes < 5; ++clothes) {
    Context now = plain_photo();
    now.clothes = static_cast<Clothes>(clothes);
    now.clothes_color = Color::kBlue;
    const Image image = render(plain_person(), now, kTestSize);
    double red = 0, blue = 0;
    for (std::int64_t x = 20; x < 108; ++x) {
      const std::uint8_t* rgb = &image.rgb[static_cast<std::size_t>(3 * (122 * kTestSize + x))];
      red += rgb[0];
      blue += rgb[2];
    }
    EXPECT_GT(blue, 1.3 * red) << clothes;
  }
}

}  // namespace
}  // namespace sdtune::train::portrait
