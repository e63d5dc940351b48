#include "train/portrait/detailed/mouth_paint.h"

#include <gtest/gtest.h>

#include "tests/train/portrait/detailed/rendering.h"

namespace sdtune::train::portrait {
namespace {

// Points of the mouth that are as bright as teeth on the darkest skin.
int teeth(Expression expression) {
  Identity who = plain_person();
  who.skin_tone = 0.95f;
  Context now = plain_photo();
  now.expression = expression;
  const Figure figure(who, now);
  int bright = 0;
  for (int y = -30; y <= 20; ++y) {
    for (int x = -40; x <= 40; ++x) {
      CoatedPoint point;
      point.albedo = {0.09f, 0.04f, 0.03f};
      paint_mouth(figure, {0.01f * static_cast<float>(x), figure.face().mouth_y + 0.01f * static_cast<float>(y), 0.75f},
                  point);
      bright += point.albedo.y > 0.35f ? 1 : 0;
    }
  }
  return bright;
}

TEST(Mouth, ShowsTeethInLaughterSomeInASmileAndNoneElse) {
  EXPECT_GT(teeth(Expression::kLaugh), 150);
  EXPECT_GT(teeth(Expression::kSmile), 60);
  EXPECT_GT(teeth(Expression::kLaugh), 1.3 * teeth(Expression::kSmile));
  for (const Expression closed : {Expression::kNeutral, Expression::kSad, Expression::kSurprised})
    EXPECT_EQ(teeth(closed), 0);
}

TEST(Mouth, CornersRiseInASmileAndFallInSadness) {
  Context now = plain_photo();
  const auto corner = [&](Expression expression) {
    now.expression = expression;
    const FaceMeasures face(plain_person(), now);
    return -face.over_mouth(face.mouth_half_width, face.mouth_y);  // of the line in its corner, over its mean
  };
  EXPECT_GT(corner(Expression::kSmile), 0.05f);
  EXPECT_GT(corner(Expression::kLaugh), 0.05f);
  EXPECT_LT(corner(Expression::kSad), -0.03f);
  EXPECT_NEAR(corner(Expression::kNeutral), 0, 0.02f);
}

}  // namespace
}  // namespace sdtune::train::portrait
