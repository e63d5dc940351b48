#include "train/portrait/detailed/eye_paint.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

// On the front of an eyeball, `along` half widths from the point nearest to the camera.
Place2 on_eye(const Identity& who, const Context& now, float side, float along) {
  const Figure figure(who, now);
  const FaceMeasures& face = figure.face();
  const Vec3 center{side * face.eye_x, face.eye_y, face.eyeball_z};
  const Vec3 gaze = normalize(figure.camera() - center);
  return place_of(who, now, center + gaze * face.eyeball_radius + Vec3{along * face.eye_half_width, 0, 0});
}

TEST(Eyes, HaveAPupilDarkerThanTheirWhiteWhereTheyLookAtTheCamera) {
  Identity who = plain_person();
  who.eye_hue = 0.2f;
  for (const float yaw : {-0.06f, 0.0f, 0.06f}) {
    Context now = plain_photo();
    now.yaw = yaw;
    const Image image = render(who, now, kTestSize);
    for (const float side : {-1.0f, 1.0f}) {
      const double pupil = patch(image, on_eye(who, now, side, 0), 0).mean;
      const float outwards = yaw == 0.0f ? side : (yaw > 0 ? -1.0f : 1.0f);  // where the white is wide
      EXPECT_LT(pupil, patch(image, on_eye(who, now, side, 0.72f * outwards), 0).mean - 40) << yaw << " " << side;
    }
  }
}

TEST(Eyes, AreOpenedWideInSurpriseAndNarrowInLaughter) {
  Context now = plain_photo();
  const auto opening = [&](Expression expression) {
    now.expression = expression;
    const FaceMeasures face(plain_person(), now);
    return face.upper_lid_at(0) - face.lower_lid_at(0);
  };
  EXPECT_GT(opening(Expression::kSurprised), 1.2f * opening(Expression::kNeutral));
  EXPECT_LT(opening(Expression::kLaugh), 0.8f * opening(Expression::kNeutral));
  const FaceMeasures face(plain_person(), plain_photo());
  EXPECT_NEAR(face.upper_lid_at(1), face.lower_lid_at(1), 1e-6f);  // the lids meet in the corners
  EXPECT_NEAR(face.upper_lid_at(-1), face.lower_lid_at(-1), 1e-6f);
}

// The light's image on the cornea is on the light's side.
TEST(Eyes, ReflectTheLight) {
  CoatedPoint left, right;
  for (const float x : {-0.7f, 0.7f}) {
    Context now = plain_photo();
    now.light = normalize(Vec3{x, 0.3f, 1});
    const Figure figure(plain_person(), now);
    const FaceMeasures& face = figure.face();
    int on_left = 0, on_right = 0;
    for (int i = -20; i <= 20; ++i) {
      const float offset = 0.004f * static_cast<float>(i);
      for (int j = -10; j <= 10; ++j) {
        CoatedPoint point;
        paint_eyes(figure, {face.eye_x + offset, face.eye_y + 0.004f * static_cast<float>(j), face.eyeball_z + 0.19f},
                   point);
        if (point.glow.x > 0.5f) ++(offset < 0 ? on_left : on_right);
      }
    }
    EXPECT_GT(x > 0 ? on_right : on_left, 8);
    EXPECT_GT(x > 0 ? on_right : on_left, 3 * (x > 0 ? on_left : on_right));
  }
}

}  // namespace
}  // namespace sdtune::train::portrait
