#include "train/portrait/detailed/figure.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kYaw = 35.0f / 360;

float distance(const Figure& figure, Vec3 p) {
  return figure.distance(Vec3x4{p.x, p.y, p.z}).at(0);
}

Vec3 nose_tip(const Figure& figure) {
  Vec3 p{0, figure.face().nose_y, 0.5f};
  while (distance(figure, figure.from_head(p)) < 0) p.z += 0.002f;
  return p;
}

TEST(Figure, NoseIsWhereTheTurnedHeadPutsIt) {
  Context straight = plain_photo(), turned = plain_photo();
  turned.yaw = kYaw;
  const Figure front(plain_person(), straight), side(plain_person(), turned);
  const Vec3 tip = nose_tip(front);
  EXPECT_NEAR(distance(side, side.from_head(tip)), 0, 0.01f);
  EXPECT_GT(distance(side, tip), 0.06f);  // and no longer where it was
  const float moved = place_of(plain_person(), turned, tip).x - place_of(plain_person(), straight, tip).x;
  // sin 35 degrees of what the tip is in front of the neck's axis, at 64 px for 1.65.
  EXPECT_NEAR(std::abs(moved), 0.5736 * tip.z * 64 / 1.65 * 1.1, 2.5);
}

TEST(Figure, PartsAreWhereTheyAreWorn) {
  Identity who = plain_person();
  who.hair_style = HairStyle::kShort;
  who.facial_hair = FacialHair::kBeard;
  who.earrings = 1;
  Context now = plain_photo();
  const auto part_on_ray = [&](const Figure& figure, Vec3 from, Vec3 step) {
    Vec3 p = from;
    for (int i = 0; i < 4000 && distance(figure, p) > 0.002f; ++i) p = p + step * 0.001f;
    return figure.parts_at(Vec3x4{p.x, p.y, p.z})[0];
  };
  const Figure bare(who, now);
  const Vec3 back{0, 0, -1};
  EXPECT_EQ(part_on_ray(bare, {0, 0.95f, 2}, back), Part::kHair);
  EXPECT_EQ(part_on_ray(bare, {0, bare.face().mouth_y - 0.25f, 2}, back), Part::kBeard);
  EXPECT_EQ(part_on_ray(bare, {0, 0.45f, 2}, back), Part::kSkin);
  EXPECT_EQ(part_on_ray(bare, {0, -1.7f, 2}, back), Part::kClothes);
  now.hat = Hat::kBeanie;
  now.glasses = Glasses::kSunglasses;
  const Figure worn(who, now);
  EXPECT_EQ(part_on_ray(worn, {0, 0.95f, 2}, back), Part::kHat);
  EXPECT_EQ(part_on_ray(worn, {worn.face().eye_x, 0.06f, 2}, back), Part::kLens);
}

// The renderer steps by the distance: a field that grows much faster than the way would be stepped through.
TEST(Figure, DistanceNeverGrowsMuchFasterThanTheWay) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Figure figure(draw_identity(seed), draw_context(seed, Detail::k128));
    for (std::uint32_t i = 0; i < 300; ++i) {
      const Vec3 p{3 * hash_unit(1, 0, i) - 1.5f, 3 * hash_unit(2, 0, i) - 1.7f, 2.4f * hash_unit(3, 0, i) - 0.9f};
      const float here = distance(figure, p), there = distance(figure, p + Vec3{0, 0, -0.01f});
      if (std::abs(here) > 0.2f) continue;
      EXPECT_LT(here - there, 0.035f) << seed << " " << p.x << " " << p.y << " " << p.z;
    }
  }
}

}  // namespace
}  // namespace sdtune::train::portrait
