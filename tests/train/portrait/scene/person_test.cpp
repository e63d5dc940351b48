#include "train/portrait/scene/person.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sdtune::train::portrait {
namespace {

TEST(Detail, HeadsTurnFurtherInTheFinerOneAndAllElseStays) {
  float most_yaw = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Context coarse = draw_context(seed), fine = draw_context(seed, Detail::k128);
    EXPECT_EQ(coarse.detail, Detail::k64);
    EXPECT_EQ(fine.detail, Detail::k128);
    EXPECT_LE(std::abs(coarse.yaw), 22.0f / 360);
    EXPECT_LE(std::abs(fine.yaw), 35.0f / 360);
    most_yaw = std::max(most_yaw, std::abs(fine.yaw));
    EXPECT_EQ(coarse.hat, fine.hat);
    EXPECT_EQ(coarse.expression, fine.expression);
    EXPECT_EQ(coarse.clothes_color, fine.clothes_color);
    EXPECT_EQ(coarse.light.x, fine.light.x);
    EXPECT_EQ(coarse.detail_seed, fine.detail_seed);
  }
  EXPECT_GT(most_yaw, 34.0f / 360);
}

// Old people are as likely among all: age and stubble are tied to no other trait.
TEST(Detail, AgeIsDrawnIndependently) {
  constexpr int kPeople = 4000;
  double tone = 0, beard = 0, mean = 0, stubbly = 0;
  for (std::uint64_t seed = 0; seed < kPeople; ++seed) {
    const Identity who = draw_identity(seed);
    const double age = who.age - 0.5;
    mean += who.age / kPeople;
    tone += age * (who.skin_tone - 0.5) / kPeople * 12;  // 1 / 12: the variance of a number in [0, 1]
    beard += age * (static_cast<double>(who.facial_hair) - 1.5) / kPeople * 3;
    stubbly += who.stubble > 0 ? 1.0 / kPeople : 0.0;
  }
  EXPECT_NEAR(mean, 0.5, 0.02);
  EXPECT_NEAR(tone, 0, 0.06);
  EXPECT_NEAR(beard, 0, 0.06);
  EXPECT_NEAR(stubbly, 0.3, 0.03);
}

}  // namespace
}  // namespace sdtune::train::portrait
