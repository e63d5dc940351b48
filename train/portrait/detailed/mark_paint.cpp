#include "train/portrait/detailed/mark_paint.h"

#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kEdge = 0.012f;  // half of a pixel of 128
constexpr Vec2 kBirthmarkPlaces[] = {{-0.42f, -0.18f}, {0.42f, -0.18f}, {0.22f, 0.52f}, {-0.12f, -0.72f}};
constexpr Vec2 kMolePlaces[] = {{-0.22f, -0.34f}, {0.30f, -0.30f}, {0.40f, -0.14f}, {-0.16f, 0.44f}};

void paint_birthmark(const Identity& who, Vec3 q, CoatedPoint& surface) {
  const Vec2 at = kBirthmarkPlaces[who.birthmark - 1];
  const float ragged = value_noise(q.x * 11.0f, q.y * 11.0f, 3) - 0.5f;
  const float r = length((q.x - at.x) / 0.175f, (q.y - at.y) / 0.130f) + 0.45f * ragged;
  const Vec3 wine = mix(plain_skin(who), Vec3{0.27f, 0.018f, 0.050f}, 0.78f);
  const float inside = below(r, 0.92f, kEdge / 0.13f);
  surface.albedo = mix(surface.albedo, wine * (0.85f + 0.3f * value_noise(q.x * 17.0f, q.y * 17.0f, 4)), inside);
}

void paint_mole(const Identity& who, Vec3 q, CoatedPoint& surface) {
  const Vec2 at = kMolePlaces[who.mole - 1];
  const float r = length(q.x - at.x, q.y - at.y);
  surface.albedo = mix(surface.albedo, Vec3{0.030f, 0.016f, 0.012f}, below(r, 0.046f, kEdge));
  surface.normal.x += 0.7f * (q.x - at.x) / 0.05f * below(r, 0.05f, kEdge);
  surface.normal.y += 0.7f * (q.y - at.y) / 0.05f * below(r, 0.05f, kEdge);
  surface.normal = normalize(surface.normal);
}

// Across a brow and the cheek under it.
void paint_scar(Vec3 q, CoatedPoint& surface) {
  const float along = q.y - 0.10f, across = q.x + 0.36f - 0.25f * along + 0.015f * sine_of_turns(along * 1.7f);
  const float reach = below(std::abs(along), 0.40f, 0.03f);
  const float line = band(across, 0.020f, kEdge) * reach;
  surface.albedo = mix(surface.albedo, Vec3{0.80f, 0.47f, 0.43f}, 0.85f * line);
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{0.62f, 0.40f, 0.38f},
                       0.6f * band(across - 0.034f, 0.004f, kEdge) * reach);
  surface.gloss += 0.25f * line;
}

// Spots in a lattice, each moved by a hash, over nose and cheeks.
void paint_freckles(const Identity& who, Vec3 q, CoatedPoint& surface) {
  const float zone =
      saturate(hill(std::abs(q.x) - 0.30f, q.y + 0.17f, 0.36f, 0.24f) + 0.8f * hill(q.x, q.y + 0.08f, 0.16f, 0.18f));
  if (zone <= 0) return;
  constexpr float kCell = 0.072f;
  const auto column = static_cast<int>(std::floor(q.x / kCell)), row = static_cast<int>(std::floor(q.y / kCell));
  float dark = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int ix = column + dx, iy = row + dy;
      const float x = (static_cast<float>(ix) + hash_unit(ix, iy, 21)) * kCell;
      const float y = (static_cast<float>(iy) + hash_unit(ix, iy, 22)) * kCell;
      const float size = 0.010f + 0.012f * hash_unit(ix, iy, 23);
      dark = most(dark, below(length(q.x - x, q.y - y), size, 0.010f));
    }
  }
  surface.albedo = mix(surface.albedo, surface.albedo * Vec3{0.52f, 0.36f, 0.27f},
                       dark * smoothstep(0.05f, 0.5f, zone) * (0.45f + 0.55f * who.freckles));
}

// The middle and three points around it.
std::array<Vec2, 4> points_about(Vec2 at, float x, float y) {
  return {at, Vec2{at.x - x, at.y}, Vec2{at.x + x, at.y}, Vec2{at.x, at.y + y}};
}

}  // namespace

std::array<Vec2, 4> birthmark_points(const Identity& who) {
  return points_about(kBirthmarkPlaces[who.birthmark - 1], 0.09f, 0.07f);
}

std::array<Vec2, 4> mole_points(const Identity& who) {
  return points_about(kMolePlaces[who.mole - 1], 0.025f, 0.025f);
}

std::array<Vec2, 4> scar_points() {
  std::array<Vec2, 4> points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float along = -0.30f + 0.20f * static_cast<float>(i);
    points[i] = {-0.36f + 0.25f * along, 0.10f + along};
  }
  return points;
}

void paint_marks(const Identity& who, Vec3 q, CoatedPoint& surface) {
  if (who.freckles > 0) paint_freckles(who, q, surface);
  if (who.birthmark > 0) paint_birthmark(who, q, surface);
  if (who.mole > 0) paint_mole(who, q, surface);
  if (who.scar) paint_scar(q, surface);
}

}  // namespace sdtune::train::portrait
