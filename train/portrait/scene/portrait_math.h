// The arithmetic of the renderer: only + - * / sqrt, floor and polynomials of our own. With -ffp-contract=off every
// x86-64 processor computes the same bits, so a seed gives the same image everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "train/portrait/scene/vec3.h"

namespace sdtune::train::portrait {

constexpr float clamp(float v, float low, float high) {
  return v < low ? low : (v > high ? high : v);
}
inline Float4 clamp(Float4 v, float low, float high) {
  return select(v < low, low, select(v > high, high, v));
}
template <Number F>
constexpr F saturate(F v) {
  return clamp(v, 0.0f, 1.0f);
}
template <Number F>
constexpr F mix(F a, F b, F t) {
  return a + (b - a) * t;
}
constexpr Vec3 mix(Vec3 a, Vec3 b, float t) {
  return a + (b - a) * t;
}
// 0 below `low`, 1 above `high`, a cubic between.
constexpr float smoothstep(float low, float high, float v) {
  const float t = saturate((v - low) / (high - low));
  return t * t * (3.0f - 2.0f * t);
}
// A union of two distances, rounded over the width k.
template <Number F>
constexpr F smooth_min(F a, F b, float k) {
  const F h = saturate(0.5f + 0.5f * (b - a) / k);
  return mix(b, a, h) - k * h * (1.0f - h);
}
template <Number F>
constexpr F smooth_max(F a, F b, float k) {
  return -smooth_min(-a, -b, k);
}

// sin(2 pi turns); error below 2e-4, which no 8-bit pixel shows.
template <Number F>
F sine_of_turns(F turns) {
  const F t = turns - whole(turns) - 0.5f;                                         // [-0.5, 0.5), half a turn off
  const F folded = select(t > 0.25f, 0.5f - t, select(t < -0.25f, -0.5f - t, t));  // [-0.25, 0.25]
  const F a = folded * 6.28318531f;
  const F a2 = a * a;
  return -a * (1.0f + a2 * (-0.16666667f + a2 * (0.00833333f + a2 * -0.00019841f)));
}
inline float cosine_of_turns(float turns) {
  return sine_of_turns(turns + 0.25f);
}

// A well-mixed hash of a lattice point (the finalizer of MurmurHash3).
constexpr std::uint32_t hash(std::int32_t x, std::int32_t y, std::uint32_t seed) {
  std::uint32_t h = static_cast<std::uint32_t>(x) * 0x9E3779B1u ^ static_cast<std::uint32_t>(y) * 0x85EBCA77u ^ seed;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}
// [0, 1)
constexpr float hash_unit(std::int32_t x, std::int32_t y, std::uint32_t seed) {
  return static_cast<float>(hash(x, y, seed) >> 8) * (1.0f / 16777216.0f);
}
// Smooth value noise in [0, 1) with a lattice of 1.
inline float value_noise(float x, float y, std::uint32_t seed) {
  const float fx = std::floor(x), fy = std::floor(y);
  const auto ix = static_cast<std::int32_t>(fx), iy = static_cast<std::int32_t>(fy);
  const float tx = smoothstep(0, 1, x - fx), ty = smoothstep(0, 1, y - fy);
  return mix(mix(hash_unit(ix, iy, seed), hash_unit(ix + 1, iy, seed), tx),
             mix(hash_unit(ix, iy + 1, seed), hash_unit(ix + 1, iy + 1, seed), tx), ty);
}

// A rotation, stored as its rows: rotate gives R v, unrotate R^T v.
struct Rotation {
  Vec3 row0{1, 0, 0}, row1{0, 1, 0}, row2{0, 0, 1};

  // Yaw about y, then pitch about x, then roll about z; all in turns.
  static Rotation from_turns(float yaw, float pitch, float roll);
  template <Number F>
  constexpr Vec3Of<F> rotate(Vec3Of<F> v) const {
    return {dot(row0, v), dot(row1, v), dot(row2, v)};
  }
  constexpr Vec3 unrotate(Vec3 v) const { return row0 * v.x + row1 * v.y + row2 * v.z; }
};

// Signed distances. Ellipsoid: the usual first-order bound, exact on the surface.
template <Number F>
F ellipsoid(Vec3Of<F> p, Vec3 radii) {
  const Vec3Of<F> q = p / radii;
  const Vec3Of<F> r = q / radii;
  const F k0 = length(q), k1 = length(r);
  return select(k1 > 0.0f, k0 * (k0 - 1.0f) / k1, F(-std::min({radii.x, radii.y, radii.z})));
}
template <Number F>
F capsule(Vec3Of<F> p, Vec3 a, Vec3 b, float radius) {
  const Vec3Of<F> pa = p - a;
  const Vec3 ba = b - a;
  const F h = saturate(dot(pa, ba) / dot(ba, ba));
  return length(pa - ba * h) - radius;
}
// An ellipsoid with its reciprocals, since one is evaluated millions of times an image.
struct Ellipsoid {
  Vec3 center;
  Vec3 inverse_radii;

  static Ellipsoid of(Vec3 center, Vec3 radii) { return {center, {1.0f / radii.x, 1.0f / radii.y, 1.0f / radii.z}}; }
  template <Number F>
  F distance(Vec3Of<F> p) const {
    const Vec3Of<F> q = (p - center) * inverse_radii;
    const F k0 = length(q);
    const F k1 = length(q * inverse_radii);
    return k0 * (k0 - 1.0f) / most(k1, F(1e-6f));
  }
};
// A cylinder about y with rounded edges.
template <Number F>
F disc(Vec3Of<F> p, float radius, float half_height, float rounding) {
  const F dx = length(p.x, p.z) - radius + rounding;
  const F dy = magnitude(p.y) - half_height + rounding;
  return least(most(dx, dy), F(0.0f)) + length(most(dx, F(0.0f)), most(dy, F(0.0f))) - rounding;
}
// A ring of the given radius about the axis z.
template <Number F>
F ring(Vec3Of<F> p, float radius, float thickness) {
  return length(length(p.x, p.y) - radius, p.z) - thickness;
}

}  // namespace sdtune::train::portrait
