#include "train/portrait/renderer/portrait_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "train/portrait/renderer/caption.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::portrait {
namespace {

std::vector<Portrait> some_portraits(std::uint64_t count) {
  std::vector<Portrait> portraits;
  for (std::uint64_t i = 0; i < count; ++i) portraits.push_back(draw_portrait({i / 2, 1000 + i}));
  return portraits;
}

TEST(PortraitBatch, HoldsWhatRenderGivesForAnyNumberOfThreads) {
  constexpr std::int64_t kSize = 24;
  const std::vector<Portrait> portraits = some_portraits(7);
  std::vector<std::uint8_t> expected;
  for (const Portrait& portrait : portraits) {
    const Image image = render(portrait.who, portrait.now, kSize);
    expected.insert(expected.end(), image.rgb.begin(), image.rgb.end());
  }
  for (const int threads : {1, 2, 5, 20}) EXPECT_EQ(render_batch(portraits, kSize, threads), expected) << threads;
  // Order matters: the same images the other way round are other bytes.
  std::vector<Portrait> reversed(portraits.rbegin(), portraits.rend());
  EXPECT_NE(render_batch(reversed, kSize, 2), expected);
}

TEST(PortraitBatch, IsEmptyForNoPortraits) {
  EXPECT_TRUE(render_batch({}, 64, 3).empty());
}

TEST(PortraitBatch, RefusesSizesAndThreadsThatCannotWork) {
  const std::vector<Portrait> one = some_portraits(1);
  EXPECT_THROW(render_batch(one, 15, 1), std::invalid_argument);
  EXPECT_THROW(render_batch(one, 1025, 1), std::invalid_argument);
  EXPECT_THROW(render_batch(one, 64, 0), std::invalid_argument);
}

TEST(Portrait, IsDrawnFromItsSeedsAlone) {
  const Portrait a = draw_portrait({3, 9}), b = draw_portrait({3, 9}), other = draw_portrait({3, 10});
  EXPECT_EQ(a.caption, b.caption);
  EXPECT_EQ(a.caption, caption(draw_identity(3), draw_context(9), 9));
  EXPECT_EQ(a.who.skin_tone, other.who.skin_tone);
  EXPECT_NE(a.now.detail_seed, other.now.detail_seed);
}

TEST(PortraitBatch, PhotosDifferFromPortraitsInStyleAlone) {
  int sketches = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Portrait any = draw_portrait({3, seed}), photo = draw_photo({3, seed});
    EXPECT_EQ(photo.now.style, Style::kPhoto);
    EXPECT_EQ(photo.now.place, any.now.place);
    EXPECT_EQ(photo.now.yaw, any.now.yaw);
    sketches += any.now.style == Style::kSketch ? 1 : 0;
    EXPECT_TRUE(photo.caption == any.caption || any.now.style != Style::kPhoto);
  }
  EXPECT_GT(sketches, 0);
}

}  // namespace
}  // namespace sdtune::train::portrait
