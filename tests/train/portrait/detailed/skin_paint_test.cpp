#include "train/portrait/detailed/skin_paint.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"
#include "train/portrait/detailed/lighting.h"

namespace sdtune::train::portrait {
namespace {

Patch patch_of(const Identity& who, Vec3 q, std::int64_t r) {
  const Context now = plain_photo();
  return patch(render(who, now, kTestSize), place_of(who, now, q), r);
}

TEST(Skin, AgeDrawsLinesOnTheForehead) {
  Identity young = plain_person(), old = plain_person();
  young.age = 0;
  old.age = 1;
  const Vec3 forehead{0, 0.54f, 0.72f};
  EXPECT_GT(patch_of(old, forehead, 5).roughness, 3 * patch_of(young, forehead, 5).roughness);
}

// Every mark is where it is on no other person.
TEST(Skin, MarksChangeTheirPlace) {
  const auto change = [](auto&& mark, Vec3 q) {
    Identity marked = plain_person();
    mark(marked);
    return std::abs(patch_of(marked, q, 0).mean - patch_of(plain_person(), q, 0).mean);
  };
  constexpr Vec2 kBirthmarks[] = {{-0.42f, -0.18f}, {0.42f, -0.18f}, {0.22f, 0.52f}, {-0.12f, -0.72f}};
  constexpr float kDepths[] = {0.55f, 0.55f, 0.66f, 0.66f};
  for (int i = 0; i < 4; ++i) {
    EXPECT_GT(change([i](Identity& who) { who.birthmark = i + 1; }, {kBirthmarks[i].x, kBirthmarks[i].y, kDepths[i]}),
              25)
        << i;
  }
  EXPECT_GT(change([](Identity& who) { who.mole = 1; }, {-0.22f, -0.34f, 0.70f}), 40);
  EXPECT_EQ(change([](Identity& who) { who.mole = 1; }, {0.22f, -0.34f, 0.70f}), 0);
}

// Light that goes under the skin makes the border of its shadow warm.
TEST(Skin, ShadowHasAWarmBorder) {
  CoatedPoint surface;
  surface.albedo = {0.5f, 0.5f, 0.5f};
  surface.coat = Coat::kSkin;
  Context now = plain_photo();
  now.light = {1, 0, 0};
  surface.normal = normalize(Vec3{-0.02f, 0, 1});
  const LightAt border{{0, 0, -1}, 0.5f, 0.8f};
  const Vec3 warm = lit_color(now, surface, border);
  surface.coat = Coat::kCloth;
  const Vec3 plain = lit_color(now, surface, border);
  EXPECT_GT(warm.x / warm.z, 1.1f * plain.x / plain.z);
}

}  // namespace
}  // namespace sdtune::train::portrait
