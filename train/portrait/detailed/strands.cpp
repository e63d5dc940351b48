#include "train/portrait/detailed/strands.h"

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/hair_shape.h"
#include "train/portrait/scene/palette.h"

namespace sdtune::train::portrait {
namespace {

// A number in [-2, 2] that grows with the angle of (x, y), as an angle does; the step is on the negative x axis.
float angle_like(float x, float y) {
  const float t = y / most(std::abs(x) + std::abs(y), 1e-6f);
  return x >= 0 ? t : (y >= 0 ? 2 - t : -2 - t);
}

Vec3 in_surface(Vec3 direction, Vec3 normal) {
  const Vec3 flat = direction - normal * dot(direction, normal);
  return flat * (1.0f / most(length(flat), 1e-4f));
}

// Strands that leave a pole, as from the crown or a parting.
Strand from_pole(Vec3 q, Vec3 pole, Vec3 normal, float drop) {
  const Vec3 v = q - pole;
  const Vec3 down{0.25f * v.x, -1, 0.25f * v.z};
  return {angle_like(-v.z, v.x), length(v), in_surface(mix(normalize(v), down, drop), normal)};
}

}  // namespace

Strand hair_strand(const Identity& who, Vec3 q, Vec3 normal) {
  switch (who.hair_style) {
    case HairStyle::kLong:
    case HairStyle::kBob: {
      // From a parting beside the middle; below the temples they fall.
      const float parting = who.hair_style == HairStyle::kLong ? 0.0f : 0.20f;
      Strand strand = from_pole(q, {parting, 1.06f, 0.12f}, normal, smoothstep(0.7f, 0.1f, q.y));
      // What of a curtain faces the viewer lies one behind the other as seen from the pole.
      if (who.hair_style == HairStyle::kLong) strand.across += 0.55f * smoothstep(0.5f, -0.1f, q.y) * std::abs(q.x);
      strand.across += 0.05f * sine_of_turns(0.9f * q.y + 0.3f * q.x);
      return strand;
    }
    case HairStyle::kBun: {
      const Vec3 v = q - kBunCenter;
      if (length(v) < kBunRadius + 0.05f) {  // wound around
        return {6.0f * (v.y + 0.35f * v.x), angle_like(v.x, v.z), in_surface({-v.z + 0.2f, -0.35f, v.x}, normal)};
      }
      return from_pole(q, kBunCenter, normal, 0);
    }
    case HairStyle::kMohawk: {
      const Vec3 v = q - Vec3{0, 0.10f, -0.15f};
      return {2.2f * angle_like(v.y, v.z) + 0.8f * v.x, length(v), in_surface(normalize(v), normal)};
    }
    case HairStyle::kQuiff:
      if (q.y > 0.62f && q.z > -0.2f) {  // combed up and back
        return {q.x * 1.1f + 0.25f * q.z, q.z, in_surface({0.15f * q.x, 0.5f, -0.8f}, normal)};
      }
      return from_pole(q, {0, 1.0f, -0.1f}, normal, 0.3f);
    default:
      return from_pole(q, {0.10f, 1.10f, -0.25f}, normal, 0.15f);
  }
}

Strand beard_strand(Vec3 q, Vec3 normal) {
  return {q.x * 0.9f + 0.15f * q.z * (q.x < 0 ? -1.0f : 1.0f), -q.y, in_surface({0.35f * q.x, -1, 0.1f}, normal)};
}

float strand_noise(const Strand& strand, float per_unit, std::uint32_t seed) {
  return value_noise(strand.across * per_unit, strand.along * 1.6f, seed);
}

Vec3 hair_color_at(const Identity& who, const FaceMeasures& face, Vec3 q, const Strand& strand) {
  Vec3 color = rgb_of(who.hair_color) * (1 + 0.30f * who.hair_shade);
  // Black hair reflects a little more than none, or nothing of it would be seen.
  color = color + Vec3{0.010f, 0.008f, 0.007f};
  const float temple = smoothstep(0.30f, 0.62f, std::abs(q.x) / face.width) * below(q.y, 0.52f, 0.25f);
  const float noise = strand_noise(strand, 17.0f, 77);
  color =
      mix(color, Vec3{0.42f, 0.42f, 0.43f}, face.wrinkles * (0.06f + 0.55f * temple) * smoothstep(0.25f, 0.7f, noise));
  if (who.streak > 0 && q.y > -0.2f) {
    const float center = 0.42f * static_cast<float>(who.streak - 2);
    const float edge = 0.16f + 0.03f * (value_noise(q.y * 4.0f, q.z * 4.0f, 5) - 0.5f);
    color = mix(color, rgb_of_hue(who.streak_hue), band(q.x - center, edge, 0.02f));
  }
  return color;
}

}  // namespace sdtune::train::portrait
