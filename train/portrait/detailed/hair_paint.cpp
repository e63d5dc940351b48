#include "train/portrait/detailed/hair_paint.h"

#include "train/portrait/detailed/strands.h"

namespace sdtune::train::portrait {
namespace {

// Locks and single strands: light and dark, and turned a little to either side, so that the highlight breaks up.
void lay_strands(const Strand& strand, Vec3 color, float curl, CoatedPoint& surface) {
  const float lock = strand_noise(strand, 11.0f, 41), fine = strand_noise(strand, 40.0f, 42);
  const float shade = 0.45f * lock + 0.55f * fine;
  surface.albedo = color * mix(0.22f, 1.34f, shade);
  surface.coat = Coat::kStrands;
  const Vec3 across = cross(strand.tangent, surface.normal);
  const float lean = (lock - 0.5f) * 0.55f + (fine - 0.5f) * 0.35f;
  surface.normal = normalize(surface.normal + across * (lean * curl));
  surface.tangent = normalize(strand.tangent + surface.normal * (0.30f * (fine - 0.5f)));
  surface.gloss = 0.55f + 0.45f * fine;
  surface.kept = mix(0.70f, 1.0f, smoothstep(0.10f, 0.5f, lock));
}

// Curls have no common direction: small bright tops and dark gaps.
void lay_curls(Vec3 q, Vec3 color, CoatedPoint& surface) {
  const float a = value_noise(q.x * 13.0f + 3.0f * q.z, q.y * 13.0f - 2.0f * q.z, 51);
  const float b = value_noise(q.x * 24.0f - 5.0f * q.z, q.y * 24.0f + 4.0f * q.z, 52);
  const float top = 0.55f * a + 0.45f * b;
  surface.albedo = color * mix(0.42f, 1.35f, top);
  surface.coat = Coat::kStrands;
  const Vec3 turn = normalize(Vec3{a - 0.5f, b - 0.5f, 0.3f * (a - b) + 0.01f});
  surface.tangent = normalize(turn - surface.normal * dot(turn, surface.normal) + Vec3{0.02f, 0.01f, 0});
  surface.normal = normalize(surface.normal + Vec3{(a - 0.5f) * 0.9f, (b - 0.5f) * 0.9f, 0});
  surface.gloss = 0.5f * top;
  surface.kept = mix(0.45f, 1.0f, smoothstep(0.2f, 0.6f, top));
}

float jaw_zone(const FaceMeasures& face, Vec3 q) {
  const float x = std::abs(q.x), y = face.over_mouth(q.x, q.y);
  const float low = face.lower_lip + face.mouth_gap;
  const float top = q.y + 0.36f - 0.16f * x - 1.1f * most(x - 0.42f, 0.0f);
  const float jaw = below(top, 0.0f, 0.07f) * smoothstep(-0.25f, 0.05f, q.z);
  const float lips = band(y - 0.5f * (face.upper_lip - low), 0.5f * (face.upper_lip + low), 0.012f) *
                     below(x, face.mouth_half_width, 0.03f);
  const float lower_nose = below(q.y, face.nose_y - 0.09f, 0.02f);
  return jaw * (1.0f - lips) * lower_nose;
}

Vec3 beard_color(const Figure& figure, Vec3 q) {
  const Identity& who = figure.who();
  const Vec3 color = rgb_of(who.hair_color) * (0.80f + 0.25f * who.hair_shade) + Vec3{0.006f, 0.005f, 0.004f};
  const float grey = value_noise(q.x * 21.0f, q.y * 5.0f, 8);
  return mix(color, Vec3{0.40f, 0.40f, 0.41f}, 0.40f * figure.face().wrinkles * smoothstep(0.45f, 0.75f, grey));
}

}  // namespace

CoatedPoint hair_at(const Figure& figure, Vec3 q, Vec3 normal) {
  CoatedPoint surface;
  surface.normal = normal;
  const Strand strand = hair_strand(figure.who(), q, normal);
  const Vec3 color = hair_color_at(figure.who(), figure.face(), q, strand);
  if (figure.who().hair_style == HairStyle::kAfro) {
    lay_curls(q, color, surface);
  } else {
    lay_strands(strand, color, 1.0f, surface);
  }
  const bool tied = figure.who().hair_style == HairStyle::kBun && std::abs(q.y - 0.98f) < 0.04f && q.y > 0.9f &&
                    length(q.x, q.z - kBunCenter.z) < 0.30f;
  if (tied) surface.albedo = surface.albedo * 0.3f;
  return surface;
}

CoatedPoint beard_at(const Figure& figure, Vec3 q, Vec3 normal) {
  CoatedPoint surface;
  surface.normal = normal;
  Strand strand = beard_strand(q, normal);
  strand.along *= 2.6f;
  strand.across *= 1.5f;
  lay_strands(strand, beard_color(figure, q), 0.8f, surface);
  surface.gloss *= 0.4f;
  return surface;
}

void paint_scalp(const Figure& figure, Vec3 q, CoatedPoint& surface) {
  const Identity& who = figure.who();
  if (who.hair_style == HairStyle::kBald) return;
  const float inside = inside_hair(figure.face(), who.hair_style, q);
  const bool shaved = who.hair_style == HairStyle::kMohawk;
  const Strand strand = hair_strand(who, q, surface.normal);
  const float fine = strand_noise(strand, 24.0f, 61);
  float cover = below(-inside, 0.070f * (fine - 0.45f), 0.022f);
  const float ear = smoothstep(0.60f * figure.face().width, 0.66f * figure.face().width, std::abs(q.x)) *
                    below(std::abs(q.y + 0.01f), 0.26f * figure.face().ear, 0.03f) * smoothstep(-0.28f, -0.18f, q.z);
  cover *= (1.0f - ear) * smoothstep(-0.62f, -0.40f, q.y);
  if (cover <= 0) return;
  const Vec3 color = hair_color_at(who, figure.face(), q, strand);
  if (shaved) {
    const float dots = value_noise(q.x * 30.0f + q.z * 9.0f, q.y * 30.0f + q.z * 21.0f, 62);
    surface.albedo = mix(surface.albedo, color, cover * mix(0.35f, 0.70f, dots));
    surface.gloss *= 1.0f - 0.5f * cover;
    return;
  }
  surface.albedo = mix(surface.albedo, color * mix(0.6f, 1.15f, fine), 0.96f * cover);
  surface.gloss *= 1.0f - 0.8f * cover;
}

void paint_brows(const Figure& figure, Vec3 q, CoatedPoint& surface) {
  const FaceMeasures& face = figure.face();
  const float x = std::abs(q.x) - face.eye_x;
  if (x < -0.26f || x > 0.28f || q.z < 0.2f) return;
  const float y = q.y - (face.brow_y + face.brow_slope * x - face.brow_arch * x * x);
  const float h = face.brow_half_height * (1.0f - 0.55f * smoothstep(0.02f, 0.24f, x));
  if (std::abs(y) > h + 0.05f) return;
  // Strokes lean outwards, the more the nearer to the temple.
  const float lean = mix(0.25f, 1.6f, smoothstep(-0.2f, 0.15f, x));
  const float stroke = value_noise((x - lean * y) * 34.0f + 50.0f, y * 5.0f + 9.0f, 71);
  const float reach = smoothstep(-0.225f, -0.175f, x + 0.03f * (stroke - 0.5f)) * below(x, 0.215f, 0.03f);
  const float cover = reach * below(std::abs(y), h * (0.78f + 0.45f * (stroke - 0.5f)), 0.016f);
  const Vec3 color = rgb_of(figure.who().hair_color) * 0.52f + Vec3{0.004f, 0.003f, 0.003f};
  surface.albedo = mix(surface.albedo, color * mix(0.7f, 1.2f, stroke), cover * mix(0.72f, 0.97f, stroke));
  surface.gloss *= 1.0f - 0.8f * cover;
}

void paint_beard_on_skin(const Figure& figure, Vec3 q, CoatedPoint& surface) {
  if (q.y > 0.05f) return;
  const Identity& who = figure.who();
  const bool beard = who.facial_hair != FacialHair::kNone;
  if (!beard && who.stubble <= 0) return;
  const float ragged = value_noise(q.x * 30.0f, q.y * 9.0f + q.z * 9.0f, 81);
  const Vec3 color = beard_color(figure, q);
  if (who.stubble > 0) {
    const float dots = value_noise(q.x * 34.0f + q.z * 11.0f, q.y * 34.0f - q.z * 17.0f, 82);
    const float cover = jaw_zone(figure.face(), q) * who.stubble * mix(0.22f, 0.62f, dots);
    const Vec3 shadow = mix(color, surface.albedo * Vec3{0.42f, 0.40f, 0.42f}, 0.55f);
    surface.albedo = mix(surface.albedo, shadow, cover);
    surface.gloss *= 1.0f - 0.6f * cover;
  }
  if (beard) {
    const float inside = inside_beard(figure.face(), who.facial_hair, q) + 0.050f * (ragged - 0.5f);
    const float cover = smoothstep(-0.018f, 0.022f, inside);
    surface.albedo = mix(surface.albedo, color * mix(0.6f, 1.2f, ragged), 0.95f * cover);
    surface.gloss *= 1.0f - 0.8f * cover;
  }
}

}  // namespace sdtune::train::portrait
