#include "train/portrait/detailed/eye_paint.h"

#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

constexpr Vec3 kPupil{0.006f, 0.005f, 0.005f};
constexpr Vec3 kSclera{0.74f, 0.71f, 0.68f};

// A point of the skin seen from the middle of the nearer eye.
struct EyePoint {
  float side;   // -1 left of the viewer's middle, 1 right
  float along;  // -1 inner corner, 1 outer
  float y, upper, lower;
};

EyePoint eye_point(const FaceMeasures& face, Vec3 q) {
  const float along = (std::abs(q.x) - face.eye_x) / face.eye_half_width;
  const float inside = clamp(along, -1, 1);
  return {q.x < 0 ? -1.0f : 1.0f, along, q.y - face.eye_y, face.upper_lid_at(inside), face.lower_lid_at(inside)};
}

// Where the view through q meets the eyeball, as the ball's unit normal there.
Vec3 eyeball_normal(const Figure& figure, Vec3 q, Vec3 center) {
  const float radius = figure.face().eyeball_radius;
  const Vec3 from = figure.camera() - center;
  const Vec3 view = normalize(q - figure.camera());
  const float b = dot(from, view);
  const float disc = b * b - (dot(from, from) - radius * radius);
  if (disc <= 0) return normalize(q - center);
  return normalize(from + view * (-b - root(disc)));
}

Vec3 iris(const Figure& figure, float x, float y, float r) {
  const Vec3 hue = iris_color(figure.who().eye_hue) * 1.25f + Vec3{0.012f, 0.010f, 0.008f};
  const float turn = y / most(std::abs(x) + std::abs(y), 1e-5f) + (x < 0 ? 4.0f : 0.0f);
  const float fibre = value_noise(turn * 5.5f, r * 1.5f, 31);
  const float depth = mix(0.62f, 1.30f, fibre) * (1.0f + 0.55f * smoothstep(0.75f, 0.45f, r));
  // Light that enters on one side leaves on the other.
  const float caustic = 1.0f - 0.55f * (x * figure.light().x + y * figure.light().y);
  const Vec3 color = hue * (depth * caustic);
  return mix(color, hue * 0.16f, smoothstep(0.74f, 1.0f, r));
}

void paint_ball(const Figure& figure, Vec3 q, const EyePoint& at, CoatedPoint& surface) {
  const FaceMeasures& face = figure.face();
  const Vec3 center{at.side * face.eye_x, face.eye_y, face.eyeball_z};
  const Vec3 normal = eyeball_normal(figure, q, center);
  const Vec3 gaze = normalize(figure.camera() - center);
  const Vec3 right = normalize(cross({0, 1, 0}, gaze)), up = cross(gaze, right);
  const float scale = face.eyeball_radius / face.iris_radius;
  const float x = dot(normal, right) * scale, y = dot(normal, up) * scale;
  const float r = length(x, y);
  const float corner = at.along * at.along;
  Vec3 color = mix(kSclera, Vec3{0.62f, 0.36f, 0.32f}, 0.55f * smoothstep(0.55f, 1.0f, corner));
  color = mix(color, iris(figure, x, y, r), below(r, 1.0f, 0.06f));
  color = mix(color, kPupil, below(r, 0.40f, 0.07f));
  const float lid_shadow = mix(0.42f, 1.0f, smoothstep(0.0f, 0.055f, at.upper - at.y));
  surface.albedo = color;
  surface.normal = normalize(normal + surface.normal * 0.35f);
  surface.kept = surface.kept * 0.4f + 0.6f * lid_shadow * (1.0f - 0.25f * corner);
  surface.gloss = 0.1f;
  // The light's image on the cornea stays over the iris, as a lamp's or a window's does.
  const Vec3 half = normalize(gaze * 1.55f + figure.light());
  const float off = 1.0f - dot(normal, half);
  surface.glow = Vec3{0.95f, 0.95f, 0.95f} * below(off, 0.0075f, 0.003f);
}

void paint_lids(const Figure& figure, const EyePoint& at, CoatedPoint& surface) {
  const FaceMeasures& face = figure.face();
  const float reach = below(std::abs(at.along), 1.10f, 0.06f);
  if (reach <= 0) return;
  const float over = at.y - at.upper, under = at.lower - at.y;
  const Vec3 skin = surface.albedo;
  // The fold over the upper lid, deeper with age.
  const float open = 0.040f + 0.25f * face.upper_lid * (1.0f - 0.5f * at.along * at.along);
  const float fold = band(over - open, 0.006f, 0.016f) * below(std::abs(at.along + 0.05f), 0.92f, 0.16f);
  surface.albedo = mix(surface.albedo, skin * Vec3{0.48f, 0.36f, 0.33f}, 0.75f * fold * reach);
  surface.kept *= 1.0f - 0.25f * fold;
  // The lid itself is a little darker and shines.
  const float lid = (over > 0 && over < open) ? 1.0f : 0.0f;
  surface.albedo = mix(surface.albedo, skin * Vec3{0.88f, 0.78f, 0.76f}, 0.6f * lid * reach);
  // Wet rim and lower lashes.
  const float rim = band(under - 0.006f, 0.004f, 0.010f);
  surface.albedo = mix(surface.albedo, skin * Vec3{0.78f, 0.50f, 0.46f}, 0.7f * rim * reach);
  const float low_lash = band(under - 0.016f, 0.001f, 0.010f) * smoothstep(-0.6f, 0.8f, at.along);
  surface.albedo = mix(surface.albedo, kPupil, 0.45f * low_lash * reach);
  // Lashes: a line that grows towards the outer corner.
  const float width = 0.016f + 0.012f * smoothstep(-0.8f, 1.0f, at.along);
  const float lash = below(over, width, 0.008f) * smoothstep(-0.022f, -0.004f, over);
  surface.albedo = mix(surface.albedo, kPupil, 0.94f * lash * below(std::abs(at.along), 1.06f, 0.05f));
  surface.gloss *= 1.0f - 0.8f * lash;
}

}  // namespace

void paint_eyes(const Figure& figure, Vec3 q, CoatedPoint& surface) {
  const FaceMeasures& face = figure.face();
  if (q.z < 0.25f || std::abs(q.y - face.eye_y) > 0.24f) return;
  const EyePoint at = eye_point(face, q);
  if (std::abs(at.along) > 1.3f) return;
  const float inside = least(at.upper - at.y, at.y - at.lower);
  const float alpha = smoothstep(-0.004f, 0.006f, inside) * (std::abs(at.along) < 1 ? 1.0f : 0.0f);
  CoatedPoint skin = surface;
  paint_lids(figure, at, skin);
  if (alpha <= 0) {
    surface = skin;
    return;
  }
  CoatedPoint ball = surface;
  paint_ball(figure, q, at, ball);
  surface.albedo = mix(skin.albedo, ball.albedo, alpha);
  surface.normal = normalize(mix(skin.normal, ball.normal, alpha));
  surface.kept = mix(skin.kept, ball.kept, alpha);
  surface.gloss = mix(skin.gloss, ball.gloss, alpha);
  surface.glow = ball.glow * alpha;
}

}  // namespace sdtune::train::portrait
