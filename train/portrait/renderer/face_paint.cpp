#include "train/portrait/renderer/face_paint.h"

#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kDark{0.012f, 0.010f, 0.010f};
constexpr Vec3 kWhite{0.82f, 0.82f, 0.80f};
constexpr float kEdge = 0.018f;  // softness of painted edges, head units

// 1 inside the ellipse about the origin, 0 outside.
float ellipse(float x, float y, float rx, float ry) {
  return 1.0f - smoothstep(1.0f - kEdge / std::min(rx, ry), 1.0f, length(x / rx, y / ry));
}

// 1 on a line of the given half width.
float line(float distance, float half_width) {
  return 1.0f - smoothstep(half_width - kEdge, half_width + kEdge, distance);
}

void paint_eyes(const Body& body, Vec3 q, Vec3& color) {
  const Identity& who = body.who();
  const float size = 1 + 0.32f * who.eye_size;
  const float opening = body.now().expression == Expression::kSurprised ? 1.35f
                        : body.now().expression == Expression::kLaugh   ? 0.7f
                                                                        : 1.0f;
  const float x = std::abs(q.x) - body.eye_x(), y = q.y - 0.08f;
  const float rx = 0.175f * size, ry = 0.125f * size * opening;
  const float upper = y > 0 ? 1.0f : 0.55f;
  color = mix(color, kDark, upper * ellipse(x, y, rx + 0.035f, ry + 0.035f));
  const float inside = ellipse(x, y, rx, ry);
  color = mix(color, kWhite, inside);
  color = mix(color, iris_color(who.eye_hue), inside * ellipse(x, y, 0.112f * size, 0.112f * size));
  color = mix(color, kDark, inside * ellipse(x, y, 0.052f * size, 0.052f * size));
  color = mix(color, kWhite, inside * ellipse(x - 0.03f * size, y - 0.03f * size, 0.024f * size, 0.024f * size));
}

void paint_brows(const Body& body, Vec3 q, Vec3& color) {
  const Identity& who = body.who();
  float slope = 0.28f * who.brow_slope, lift = 0.0f;
  if (body.now().expression == Expression::kSad) slope -= 0.45f, lift = 0.03f;
  if (body.now().expression == Expression::kSurprised) lift = 0.10f;
  const float x = std::abs(q.x) - body.eye_x();
  const float y = q.y - (0.33f + lift + slope * x - 1.1f * x * x);
  const float thickness = 0.058f * (1 + 0.60f * who.brow_thickness);
  const float reach = 1.0f - smoothstep(0.20f, 0.23f, std::abs(x));
  const Vec3 hair = rgb_of(who.hair_color) * 0.6f;
  color = mix(color, hair, reach * line(std::abs(y), thickness));
}

void paint_mouth(const Body& body, Vec3 q, Vec3& color) {
  const Expression expression = body.now().expression;
  const float y = q.y - body.mouth_y(), x = q.x;
  const float lips = 1 + 0.5f * body.who().lip_size;
  const Vec3 lip = mix(plain_skin(body.who()), Vec3{0.42f, 0.03f, 0.04f}, 0.6f);
  if (expression == Expression::kSurprised) {
    color = mix(color, lip, ellipse(x, y + 0.03f, 0.125f, 0.155f));
    color = mix(color, kDark, ellipse(x, y + 0.03f, 0.085f, 0.115f));
    return;
  }
  const float bend = expression == Expression::kSad     ? -1.6f
                     : expression == Expression::kSmile ? 1.7f
                     : expression == Expression::kLaugh ? 1.5f
                                                        : 0.1f;
  const float width = expression == Expression::kNeutral ? 0.22f : 0.27f;
  const float curve = y - bend * (x * x - 0.5f * width * width);
  const float reach = 1.0f - smoothstep(width - 0.02f, width + 0.02f, std::abs(x));
  const float taper = 1.0f - 0.5f * saturate(std::abs(x) / width);
  color = mix(color, lip, reach * line(std::abs(curve), 0.075f * lips * taper));
  if (expression == Expression::kLaugh) {
    const float open = ellipse(x, y + 0.03f, 0.235f, 0.135f) * (curve < 0.03f ? 1.0f : 0.0f);
    color = mix(color, kDark, open);
    color = mix(color, kWhite, open * (y > -0.02f ? 1.0f : 0.0f));
  } else {
    color = mix(color, kDark, reach * line(std::abs(curve), 0.020f));
  }
}

void paint_marks(const Body& body, Vec3 q, Vec3& color) {
  const Identity& who = body.who();
  const Vec3 wine = mix(plain_skin(who), Vec3{0.28f, 0.015f, 0.05f}, 0.75f);
  static constexpr Vec2 kBirthmarks[] = {{-0.42f, -0.18f}, {0.42f, -0.18f}, {0.22f, 0.52f}, {-0.12f, -0.72f}};
  if (who.birthmark > 0) {
    const Vec2 at = kBirthmarks[who.birthmark - 1];
    const float ragged = 0.05f * sine_of_turns(q.x * 2.3f + q.y * 1.7f);
    color = mix(color, wine, ellipse(q.x - at.x + ragged, q.y - at.y, 0.20f, 0.15f));
  }
  static constexpr Vec2 kMoles[] = {{-0.22f, -0.34f}, {0.30f, -0.30f}, {0.40f, 0.02f - 0.16f}, {-0.16f, 0.44f}};
  if (who.mole > 0) {
    const Vec2 at = kMoles[who.mole - 1];
    color = mix(color, kDark, ellipse(q.x - at.x, q.y - at.y, 0.062f, 0.062f));
  }
  if (who.scar) {
    const float along = q.y - 0.10f, across = q.x + 0.36f - 0.25f * along;
    const float reach = 1.0f - smoothstep(0.38f, 0.42f, std::abs(along));
    color = mix(color, mix(color, Vec3{0.80f, 0.45f, 0.42f}, 0.9f), reach * line(std::abs(across), 0.032f));
  }
  if (who.freckles > 0) {
    static constexpr Vec2 kSpots[] = {
        {0.26f, -0.16f}, {0.36f, -0.24f}, {0.38f, -0.11f}, {0.49f, -0.20f}, {0.30f, -0.32f}};
    const float size = 0.030f + 0.016f * who.freckles;
    for (const Vec2& at : kSpots) {
      color = mix(color, color * 0.40f, ellipse(std::abs(q.x) - at.x, q.y - at.y, size, size));
    }
  }
}

}  // namespace

Vec3 painted_skin(const Body& body, Vec3 q) {
  Vec3 color = plain_skin(body.who());
  if (q.z < 0.05f) return color;
  const float blush = ellipse(std::abs(q.x) - 0.42f, q.y + 0.20f, 0.22f, 0.16f);
  color = mix(color, color * Vec3{1.1f, 0.72f, 0.70f}, 0.5f * blush);
  paint_marks(body, q, color);
  paint_mouth(body, q, color);
  paint_eyes(body, q, color);
  paint_brows(body, q, color);
  return color;
}

}  // namespace sdtune::train::portrait
