// Marching four rays at once through a signed distance field, and what is read around the points that they meet.
// A Field has `Float4 distance(Vec3x4) const`: a lower bound of the distance to the nearest surface, exact near it.
#pragma once

#include "train/portrait/scene/head_place.h"
#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

// Four rays from one eye.
struct Rays {
  Vec3 origin;
  Vec3x4 directions;
  Vec3x4 at(Float4 t) const { return origin + directions * t; }
};

inline Vec3 point(const Vec3x4& points, int lane) {
  return {points.x.at(lane), points.y.at(lane), points.z.at(lane)};
}

// Image coordinates of four samples: x to the right and y up from the middle, an image spans [-1, 1].
struct Block {
  Float4 u, v;
};

inline Rays rays_through(const Context& now, const Block& block) {
  const Vec3 eye{-now.shift_x, kCameraY - now.shift_y, kCameraZ};
  const Vec3x4 targets{block.u * kHalfHeight / now.zoom - now.shift_x,
                       block.v * kHalfHeight / now.zoom + kCameraY - now.shift_y, 0};
  return {eye, normalize(targets - eye)};
}

// Where each ray enters and leaves a sphere, where it `meets` it.
struct Span {
  Float4 enter, leave;
  Mask4 meets;
};

inline Span sphere_span(const Rays& rays, Vec3 center, float radius) {
  const Vec3 oc = rays.origin - center;
  const Float4 b = dot(oc, rays.directions);
  const Float4 disc = b * b - (dot(oc, oc) - radius * radius);
  const Float4 half = root(most(disc, Float4(0.0f)));
  return {-b - half, -b + half, !(disc < 0.0f)};
}

// From where a ray enters the first of two spheres to where it leaves the last.
struct Reach {
  Float4 begin, end;
};

inline Reach reach_of(const Span& one, const Span& other) {
  constexpr float kFar = 1e3f;
  return {least(select(one.meets, one.enter, kFar), select(other.meets, other.enter, kFar)),
          most(select(one.meets, one.leave, 0.0f), select(other.meets, other.leave, 0.0f))};
}

// The distance along each ray to the field's surface; where it is `found`.
struct Hits {
  Float4 t;
  Mask4 found;
};

struct MarchLimits {
  int steps;
  float hit;         // a distance that counts as met
  float trust;       // the share of the field's distance that a step takes
  float least_step;  // and at least so far
};

template <typename Field>
Hits march(const Field& field, const Rays& rays, const Reach& reach, const MarchLimits& limits) {
  Hits hits{reach.begin, Mask4()};
  Mask4 marching = hits.t < reach.end;
  for (int step = 0; step < limits.steps && any(marching); ++step) {
    const Float4 d = field.distance(rays.at(hits.t));
    const Mask4 hit = marching & (d < limits.hit);
    hits.found = {hits.found.lanes | hit.lanes};
    marching = marching & !hit;
    hits.t = select(marching, hits.t + most(d * limits.trust, Float4(limits.least_step)), hits.t);
    marching = marching & (hits.t < reach.end);
  }
  return hits;
}

// From four points around each, `step` away along every axis.
template <typename Field>
Vec3x4 normals_at(const Field& field, const Vec3x4& p, float step) {
  constexpr Vec3 kCorners[] = {{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}};
  Vec3x4 sum;
  for (const Vec3& corner : kCorners) sum = sum + corner * field.distance(p + corner * step);
  return normalize(sum);
}

struct ShadowLimits {
  int steps;
  float begin;  // how far from the point
  float least_step, most_step;
  float sharpness;   // of the border
  float trust = 1;   // the share of the field's distance that a step takes
  float growth = 0;  // steps get longer by this share of the way gone; the border has fewer bands
};

// 0 in full shadow, 1 in full light: how near the way to the light comes to the body. Only for `lit` points.
template <typename Field>
Float4 light_reaching(const Field& field, const Vec3x4& p, Vec3 light, Mask4 lit, const ShadowLimits& limits) {
  constexpr float kDark = 0.02f;
  Float4 reaching = 1.0f, t = limits.begin;
  for (int step = 0; step < limits.steps; ++step) {
    const Mask4 going = lit & (t < 2.2f) & !(reaching < kDark);
    if (!any(going)) break;
    const Float4 d = field.distance(p + light * t);
    reaching = select(going, least(reaching, limits.sharpness * d / t), reaching);
    const Float4 longer = limits.growth * t;
    const Float4 step_length =
        least(most(limits.trust * d, limits.least_step + 0.3f * longer), limits.most_step + longer);
    t = select(going, t + step_length, t);
  }
  return select(reaching < kDark, 0.0f, saturate(reaching));
}

// 0 in a fold, 1 on open ground.
template <typename Field>
Float4 openness(const Field& field, const Vec3x4& p, const Vec3x4& normals) {
  const Float4 near = field.distance(p + normals * 0.08f), far = field.distance(p + normals * 0.28f);
  return saturate(0.25f + 0.45f * near / 0.08f * 0.5f + 0.55f * far / 0.28f);
}

}  // namespace sdtune::train::portrait
