#include "train/portrait/detailed/landmarks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kTurned = 35.0f / 360;

LandmarkPlace place(Landmark landmark, const Identity& who, const Context& now) {
  return landmarks_of(who, now).at(static_cast<std::size_t>(landmark));
}

// In pixels, y down.
Place2 pixel(const LandmarkPlace& at) {
  constexpr float kHalf = 0.5f * kTestSize;
  return {kHalf * (1 + at.x), kHalf * (1 - at.y)};
}

double darkest(const Image& image, Place2 at) {
  double found = 255;
  for (std::int64_t dy = -3; dy <= 3; ++dy) {
    for (std::int64_t dx = -3; dx <= 3; ++dx) {
      found = std::min(found,
                       brightness(image, static_cast<std::int64_t>(at.x) + dx, static_cast<std::int64_t>(at.y) + dy));
    }
  }
  return found;
}

// The pupil is the darkest of a face, wherever the head is; nine pixels lower, the mutant, there is only skin.
TEST(Landmarks, EyesAreWhereTheImageShowsThem) {
  for (const float yaw : {-kTurned, -0.03f, 0.0f, 0.06f, kTurned}) {
    Context now = plain_photo();
    now.yaw = yaw;
    now.roll = 0.02f;
    now.shift_x = 0.1f;
    now.zoom = 1.15f;
    const Identity who = plain_person();
    const Image image = render(who, now, kTestSize);
    for (const Landmark eye : {Landmark::kLeftEye, Landmark::kRightEye}) {
      const LandmarkPlace found = place(eye, who, now);
      EXPECT_TRUE(found.seen) << yaw;
      const Place2 at = pixel(found);
      const double cheek = patch(image, {at.x, at.y + 14}, 2).mean;
      EXPECT_LT(darkest(image, at), 0.55 * cheek) << yaw;
      EXPECT_GT(darkest(image, {at.x, at.y + 9}), 0.55 * cheek) << yaw;
    }
  }
}

TEST(Landmarks, AreOrderedAsTheImageIs) {
  const Identity who = plain_person();
  const Context now = plain_photo();
  const LandmarkPlace left = place(Landmark::kLeftEye, who, now), right = place(Landmark::kRightEye, who, now);
  const LandmarkPlace nose = place(Landmark::kNoseTip, who, now);
  const LandmarkPlace mouth = place(Landmark::kLeftMouthCorner, who, now);
  EXPECT_LT(left.x, nose.x);
  EXPECT_LT(nose.x, right.x);
  EXPECT_NEAR(left.x, -right.x, 1e-3f);
  EXPECT_GT(left.y, nose.y);
  EXPECT_GT(nose.y, mouth.y);
}

TEST(Landmarks, AreNotSeenBehindSunglassesOrTheHead) {
  const Identity who = plain_person();
  Context now = plain_photo();
  now.glasses = Glasses::kRound;
  EXPECT_TRUE(place(Landmark::kLeftEye, who, now).seen);
  now.glasses = Glasses::kSunglasses;
  EXPECT_FALSE(place(Landmark::kLeftEye, who, now).seen);
  EXPECT_TRUE(place(Landmark::kNoseTip, who, now).seen);
  now.yaw = 0.25f;  // a profile
  const bool left = place(Landmark::kLeftMouthCorner, who, now).seen;
  EXPECT_NE(left, place(Landmark::kRightMouthCorner, who, now).seen);
}

TEST(Landmarks, TheMouthOfABeardedManIsSeen) {
  Identity who = plain_person();
  who.facial_hair = FacialHair::kBeard;
  for (const Landmark corner : {Landmark::kLeftMouthCorner, Landmark::kRightMouthCorner}) {
    EXPECT_TRUE(place(corner, who, plain_photo()).seen);
  }
}

// A mark on a cheek is seen from the front and from its own side; how many of its pixels change says the same.
TEST(Marks, AreShownWhereTheImageChangesWithThem) {
  for (const int cheek : {1, 2}) {
    for (const float yaw : {-kTurned, 0.0f, kTurned}) {
      Identity who = plain_person();
      Context now = plain_photo();
      now.yaw = 1.7f * yaw;  // further than people turn, so that a cheek is hidden
      const Image without = render(who, now, kTestSize);
      who.birthmark = cheek;
      const Image with = render(who, now, kTestSize);
      int changed = 0;
      for (std::size_t i = 0; i < with.rgb.size(); i += 3)
        changed += std::abs(with.rgb[i + 1] - without.rgb[i + 1]) > 12;
      EXPECT_EQ(shows_mark(Mark::kBirthmark, who, now), changed > 50) << cheek << ' ' << yaw << ' ' << changed;
    }
  }
}

// The middle of what the mark changes in the image; 8 pixels beside it, the mutant, there is another part of the face.
TEST(Marks, LieWhereTheImageChangesWithThem) {
  for (const float yaw : {-0.5f * kTurned, 0.0f, 0.5f * kTurned}) {
    Identity who = plain_person();
    Context now = plain_photo();
    now.yaw = yaw;
    now.shift_x = -0.1f;
    now.zoom = 1.1f;
    const Image without = render(who, now, kTestSize);
    who.birthmark = 3;
    const Image with = render(who, now, kTestSize);
    double x = 0, y = 0, changed = 0;
    for (std::int64_t row = 0; row < kTestSize; ++row) {
      for (std::int64_t column = 0; column < kTestSize; ++column) {
        if (std::abs(brightness(with, column, row) - brightness(without, column, row)) <= 8) continue;
        x += column + 0.5;
        y += row + 0.5;
        ++changed;
      }
    }
    ASSERT_GT(changed, 50);
    const auto places = mark_places(Mark::kBirthmark, who, now);
    ASSERT_TRUE(places.has_value());
    const Place2 middle = pixel(places->front());
    EXPECT_LT(std::hypot(middle.x - x / changed, middle.y - y / changed), 2.5) << yaw;
    EXPECT_GT(std::hypot(middle.x + 8 - x / changed, middle.y - y / changed), 2.5) << yaw;
    for (const LandmarkPlace& at : *places) EXPECT_TRUE(at.seen) << yaw;
    EXPECT_FALSE(mark_places(Mark::kMole, who, now).has_value());
  }
}

TEST(Marks, AreHiddenByWhatIsWornOverThem) {
  Identity who = plain_person();
  Context now = plain_photo();
  EXPECT_TRUE(shows_mark(Mark::kBirthmark, who, now));  // none is hidden
  who.birthmark = 3;                                    // on the forehead
  EXPECT_TRUE(shows_mark(Mark::kBirthmark, who, now));
  now.hat = Hat::kBeanie;
  EXPECT_FALSE(shows_mark(Mark::kBirthmark, who, now));
  who.birthmark = 4;  // on the chin
  EXPECT_TRUE(shows_mark(Mark::kBirthmark, who, now));
  who.facial_hair = FacialHair::kBeard;
  EXPECT_FALSE(shows_mark(Mark::kBirthmark, who, now));
}

TEST(Marks, OneEarringIsEnough) {
  Identity who = plain_person();
  who.earrings = 1;
  Context now = plain_photo();
  for (const float yaw : {-kTurned, 0.0f, kTurned}) {
    now.yaw = yaw;
    EXPECT_TRUE(shows_mark(Mark::kEarrings, who, now)) << yaw;
  }
  who.hair_style = HairStyle::kBob;
  now.yaw = 0.25f;  // a profile under hair
  EXPECT_FALSE(shows_mark(Mark::kEarrings, who, now));
}

}  // namespace
}  // namespace sdtune::train::portrait
