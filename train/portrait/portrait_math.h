// The arithmetic of the renderer: only + - * / sqrt, floor and polynomials of our own. With -ffp-contract=off every
// x86-64 processor computes the same bits, so a seed gives the same picture everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sdtune::train::portrait {

struct Vec2 {
  float x = 0, y = 0;
};

struct Vec3 {
  float x = 0, y = 0, z = 0;
};

constexpr Vec3 operator+(Vec3 a, Vec3 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
constexpr Vec3 operator-(Vec3 a, Vec3 b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
constexpr Vec3 operator*(Vec3 a, Vec3 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}
constexpr Vec3 operator*(Vec3 a, float s) {
  return {a.x * s, a.y * s, a.z * s};
}
constexpr Vec3 operator/(Vec3 a, Vec3 b) {
  return {a.x / b.x, a.y / b.y, a.z / b.z};
}
constexpr float dot(Vec3 a, Vec3 b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
inline float length(Vec3 a) {
  return std::sqrt(dot(a, a));
}
inline float length(float x, float y) {
  return std::sqrt(x * x + y * y);
}
inline Vec3 normalize(Vec3 a) {
  return a * (1.0f / length(a));
}
constexpr float clamp(float v, float low, float high) {
  return v < low ? low : (v > high ? high : v);
}
constexpr float saturate(float v) {
  return clamp(v, 0.0f, 1.0f);
}
constexpr float mix(float a, float b, float t) {
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
constexpr float smooth_min(float a, float b, float k) {
  const float h = saturate(0.5f + 0.5f * (b - a) / k);
  return mix(b, a, h) - k * h * (1.0f - h);
}
constexpr float smooth_max(float a, float b, float k) {
  return -smooth_min(-a, -b, k);
}

// sin(2 pi turns); error below 2e-4, which no 8-bit pixel shows.
inline float sine_of_turns(float turns) {
  const float t = turns - std::floor(turns) - 0.5f;                          // [-0.5, 0.5), half a turn off
  const float folded = t > 0.25f ? 0.5f - t : (t < -0.25f ? -0.5f - t : t);  // [-0.25, 0.25]
  const float a = folded * 6.28318531f;
  const float a2 = a * a;
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
  constexpr Vec3 rotate(Vec3 v) const { return {dot(row0, v), dot(row1, v), dot(row2, v)}; }
  constexpr Vec3 unrotate(Vec3 v) const { return row0 * v.x + row1 * v.y + row2 * v.z; }
};

// Signed distances. Ellipsoid: the usual first-order bound, exact on the surface.
inline float ellipsoid(Vec3 p, Vec3 radii) {
  const Vec3 q = p / radii;
  const Vec3 r = q / radii;
  const float k0 = length(q), k1 = length(r);
  return k1 > 0 ? k0 * (k0 - 1.0f) / k1 : -std::min({radii.x, radii.y, radii.z});
}
inline float capsule(Vec3 p, Vec3 a, Vec3 b, float radius) {
  const Vec3 pa = p - a, ba = b - a;
  const float h = saturate(dot(pa, ba) / dot(ba, ba));
  return length(pa - ba * h) - radius;
}
// A cylinder about y with rounded edges.
inline float disc(Vec3 p, float radius, float half_height, float rounding) {
  const float dx = length(p.x, p.z) - radius + rounding;
  const float dy = std::abs(p.y) - half_height + rounding;
  return std::min(std::max(dx, dy), 0.0f) + length(std::max(dx, 0.0f), std::max(dy, 0.0f)) - rounding;
}
// A ring of the given radius about the axis z.
inline float ring(Vec3 p, float radius, float thickness) {
  return length(length(p.x, p.y) - radius, p.z) - thickness;
}

}  // namespace sdtune::train::portrait
