#include "train/portrait/scene/head_place.h"

#include <gtest/gtest.h>

#include "train/portrait/renderer/portrait_batch.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::portrait {
namespace {

constexpr std::int64_t kSize = 64;

// Two bald people without marks in one place: whatever differs is the head, and the light that it keeps from the neck.
std::pair<Identity, Identity> two_faces() {
  Identity one;
  one.hair_style = HairStyle::kBald;
  one.facial_hair = FacialHair::kNone;
  Identity other = one;
  one.skin_tone = 0.1f;
  other.skin_tone = 0.9f;
  one.face_width = one.jaw_width = one.ear_size = one.face_length = 1;
  other.face_width = other.jaw_width = -1;
  return {one, other};
}

class HeadPlaceOf : public testing::TestWithParam<Detail> {};

INSTANTIATE_TEST_SUITE_P(Details, HeadPlaceOf, testing::Values(Detail::k64, Detail::k128));

TEST_P(HeadPlaceOf, HoldsWhatDiffersBetweenTwoFaces) {
  const auto [one, other] = two_faces();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Context now = draw_context(seed, GetParam());
    now.style = Style::kPhoto;
    now.hat = Hat::kNone;
    const Image a = render(one, now, kSize), b = render(other, now, kSize);
    const HeadPlace head = head_place(now);
    std::int64_t inside = 0, outside = 0, neck = 0;
    for (std::int64_t i = 0; i < kSize * kSize; ++i) {
      const auto at = static_cast<std::size_t>(3 * i);
      if (std::abs(a.rgb[at] - b.rgb[at]) < 24) continue;
      const float x = (static_cast<float>(i % kSize) + 0.5f) * 2 / kSize - 1;
      const float y = 1 - (static_cast<float>(i / kSize) + 0.5f) * 2 / kSize;
      if (head.distance(x, y) <= 1) {
        ++inside;
      } else if (y < head.y - 0.6f * head.radius_y) {
        ++neck;  // has the skin's colour too
      } else {
        ++outside;
      }
    }
    EXPECT_GT(inside, 300) << seed;
    EXPECT_LE(outside, inside / 25) << seed;
    EXPECT_LT(neck, inside / 3) << seed;
  }
}

}  // namespace
}  // namespace sdtune::train::portrait
