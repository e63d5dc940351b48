#include "train/portrait/detailed/mouth_paint.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kInside{0.020f, 0.006f, 0.006f};
constexpr Vec3 kTooth{0.80f, 0.76f, 0.68f};
constexpr Vec3 kTongue{0.36f, 0.075f, 0.070f};

// The mouth's opening at t, -1 and 1 in its corners: how high it is, as a share of the gap.
float opening_at(Expression expression, float t) {
  const float s = saturate(1.0f - t * t);
  return expression == Expression::kSmile ? s * (1.0f + 0.6f * t * t) : root(s);
}

// y over the upper edge of the open mouth, negative.
Vec3 behind_lips(const Figure& figure, float x, float t, float y, float gap) {
  const Expression expression = figure.now().expression;
  const bool teeth = expression == Expression::kLaugh || expression == Expression::kSmile;
  const float height = least(0.075f, 0.62f * figure.face().mouth_gap + 0.02f) * (1.0f - 0.35f * t * t);
  Vec3 color = kInside;
  const float tongue = hill(x, y + gap * 1.02f, 0.75f * figure.face().mouth_half_width, 0.65f * gap);
  color = mix(color, kTongue, 0.8f * tongue * (expression == Expression::kSmile ? 0.0f : 1.0f));
  if (teeth) {
    const float width = 0.052f * (1.0f - 0.3f * std::abs(t));
    const float place = std::abs(x) / width;
    const float seam = std::abs(place - whole(place) - 0.5f) > 0.44f && place > 0.5f ? 0.80f : 1.0f;
    const float round = 1.0f - 0.55f * t * t;
    color = mix(color, kTooth * (seam * round), below(-y, height, 0.010f));
  }
  return color * mix(0.55f, 1.0f, smoothstep(0.0f, 0.022f, -y));  // the lip's shadow
}

}  // namespace

void paint_mouth(const Figure& figure, Vec3 q, CoatedPoint& surface) {
  const FaceMeasures& face = figure.face();
  const float t = q.x / face.mouth_half_width;
  if (q.z < 0.3f || std::abs(t) > 1.15f) return;
  const float y = face.over_mouth(q.x, q.y);
  if (y > 0.2f || y < -0.2f - face.mouth_gap) return;
  const float s = saturate(1.0f - t * t);
  const float taper = s * (1.0f + 0.45f * t * t);
  const float bow = 1.0f - 0.24f * hill(q.x, 0, 0.055f, 1.0f);
  const float gap = face.mouth_gap * opening_at(figure.now().expression, t);
  // A surprised mouth opens upwards too.
  const float top = figure.now().expression == Expression::kSurprised ? 0.55f * gap : 0.0f;
  const float upper = top + face.upper_lip * taper * bow,
              lower = -gap - face.lower_lip * mix(taper, root(s), gap > 0 ? 0.7f : 0.0f);
  const Vec3 skin = surface.albedo;
  const Vec3 red = mix(skin * Vec3{0.80f, 0.46f, 0.46f}, Vec3{0.40f, 0.060f, 0.065f}, 0.34f);
  const float lips = below(y, upper, 0.009f) * below(-y, -lower, 0.010f) * below(std::abs(t), 1.0f, 0.04f);
  const Vec3 lip = y > -0.5f * gap ? red * 0.80f : red;
  surface.albedo = mix(skin, lip, 0.92f * lips);
  surface.gloss = mix(surface.gloss, 0.34f, lips * (y < -gap ? 1.0f : 0.5f));
  // Under the lower lip the skin lies in shadow.
  surface.kept *= 1.0f - 0.22f * hill(q.x, y - lower + 0.035f, 0.16f, 0.030f);
  if (gap > 0.004f) {
    const float open = below(y, top, 0.008f) * below(-y, gap, 0.008f) * below(std::abs(t), 0.98f, 0.03f);
    surface.albedo = mix(surface.albedo, behind_lips(figure, q.x, t, y - top, gap + top), open);
    surface.gloss = mix(surface.gloss, 0.05f, open);
    surface.normal = normalize(mix(surface.normal, Vec3{0.35f * t, 0.05f, 1}, open));
    surface.kept = mix(surface.kept, 0.95f, open);
  } else {
    const float line = band(y, 0.007f, 0.009f) * below(std::abs(t), 0.98f, 0.05f);
    surface.albedo = mix(surface.albedo, red * 0.13f, 0.88f * line);
    surface.gloss *= 1.0f - line;
  }
  // The corners are small hollows.
  const float corner = hill(std::abs(t) - 1.0f, y * 3.0f, 0.11f, 0.10f);
  surface.albedo = mix(surface.albedo, red * 0.30f, 0.6f * corner);
}

}  // namespace sdtune::train::portrait
