#include "train/portrait/detailed/portrait_tracer.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"
#include "train/portrait/detailed/backdrop.h"
#include "train/portrait/scene/background.h"

namespace sdtune::train::portrait {
namespace {

TEST(PortraitTracer, TakesMoreSamplesAtEdgesThanOnSmoothGround) {
  Context now = plain_photo();
  const SampleGrid grid = trace_detailed(plain_person(), now, 2 * kTestSize);
  ASSERT_EQ(grid.samples.size(), static_cast<std::size_t>(4 * kTestSize * kTestSize));
  std::int64_t equal = 0, differ = 0;
  for (std::int64_t y = 0; y < grid.side; y += 2) {
    for (std::int64_t x = 0; x < grid.side; x += 2) {
      const bool same =
          grid.at(x, y).depth == grid.at(x + 1, y + 1).depth && grid.at(x, y).color.x == grid.at(x + 1, y + 1).color.x;
      ++(same ? equal : differ);
    }
  }
  EXPECT_GT(equal, kTestSize * kTestSize / 2);
  EXPECT_GT(differ, kTestSize * 4);
}

TEST(PortraitTracer, HasNoHolesInTheFace) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const Identity who = draw_identity(seed);
    const Context now = draw_context(seed, Detail::k128);
    const SampleGrid grid = trace_detailed(who, now, 2 * kTestSize);
    const HeadPlace head = head_place(now);
    int background = 0;
    for (std::int64_t y = 0; y < grid.side; ++y) {
      for (std::int64_t x = 0; x < grid.side; ++x) {
        const float u = (static_cast<float>(x) + 0.5f) / kTestSize - 1,
                    v = 1 - (static_cast<float>(y) + 0.5f) / kTestSize;
        if (head.distance(u, v) < 0.55f && grid.at(x, y).part < 0) ++background;
      }
    }
    EXPECT_EQ(background, 0) << seed;
  }
}

TEST(Backdrop, IsTheBackgroundWithoutItsFineParts) {
  Context now = plain_photo();
  now.place = Place::kForest;
  now.detail_seed = 5;
  const Backdrop backdrop(now);
  double blurred = 0, sharp = 0, mean = 0, sharp_mean = 0;
  constexpr int kSteps = 100;
  for (int i = 0; i < kSteps; ++i) {
    for (int j = 0; j < kSteps; ++j) {
      const float x = 1.8f * static_cast<float>(i) / kSteps - 0.9f, y = 1.8f * static_cast<float>(j) / kSteps - 0.9f;
      blurred += std::abs(backdrop.at(x + 0.018f, y).x - backdrop.at(x, y).x);
      sharp += std::abs(background_at(now, x + 0.018f, y).x - background_at(now, x, y).x);
      mean += backdrop.at(x, y).x;
      sharp_mean += background_at(now, x, y).x;
    }
  }
  EXPECT_LT(blurred, 0.7 * sharp);
  EXPECT_NEAR(mean / sharp_mean, 1, 0.05);
}

}  // namespace
}  // namespace sdtune::train::portrait
