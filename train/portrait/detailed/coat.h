// What a surface point is made of before light falls on it.
#pragma once

#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

// How it takes light.
enum class Coat { kSkin, kStrands, kCloth, kShiny };

struct CoatedPoint {
  Vec3 albedo;            // linear light
  Vec3 normal{0, 0, 1};   // unit; in the coordinates of the point
  Vec3 tangent{0, 1, 0};  // unit, along the strands of hair
  Coat coat = Coat::kSkin;
  float gloss = 0;  // strength of the highlight, [0, 1]
  float kept = 1;   // of the light: what a fold leaves
  Vec3 glow;        // highlights that are placed, in the eyes and on glass
};

// A number that falls from 1 to 0 as v passes `edge`, over `soft` on either side.
constexpr float below(float v, float edge, float soft) {
  return 1.0f - smoothstep(edge - soft, edge + soft, v);
}
// 1 within `half_width` of 0, softened by `soft`.
inline float band(float v, float half_width, float soft) {
  return below(std::abs(v), half_width, soft);
}
// 1 in the middle of the ellipse about the origin, 0 outside, a soft hill between.
constexpr float hill(float x, float y, float rx, float ry) {
  const float r = saturate(1.0f - (x / rx) * (x / rx) - (y / ry) * (y / ry));
  return r * r * (3.0f - 2.0f * r);
}
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace sdtune::train::portrait
