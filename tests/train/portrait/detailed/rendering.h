// One plain person and one plain photo that the tests change, and how images are read.
#pragma once

#include <cmath>
#include <cstdint>

#include "train/portrait/detailed/figure.h"
#include "train/portrait/renderer/renderer.h"
#include "train/portrait/scene/head_place.h"

namespace sdtune::train::portrait {

inline constexpr std::int64_t kTestSize = 128;

// The plainest face: bald, no beard, no marks, light skin.
inline Identity plain_person() {
  Identity who;
  who.hair_style = HairStyle::kBald;
  who.skin_tone = 0.2f;
  who.age = 0.2f;
  return who;
}

inline Context plain_photo() {
  Context now;
  now.detail = Detail::k128;
  now.light = normalize(Vec3{0.3f, 0.4f, 1.0f});
  return now;
}

// Of a point of the head, in pixels; x to the right, y down.
struct Place2 {
  float x = 0, y = 0;
};

inline Place2 place_of(const Identity& who, const Context& now, Vec3 q) {
  const Vec3 p = Figure(who, now).from_head(q);
  const Vec3 eye{-now.shift_x, kCameraY - now.shift_y, kCameraZ};
  const float s = kCameraZ / (kCameraZ - p.z);
  const float u = ((p.x - eye.x) * s) * now.zoom / kHalfHeight, v = ((p.y - eye.y) * s) * now.zoom / kHalfHeight;
  constexpr float kHalf = 0.5f * kTestSize;
  return {kHalf * (1 + u), kHalf * (1 - v)};
}

// Mean and roughness of the brightness in the square of (2 r + 1)^2 pixels about a place.
struct Patch {
  double mean = 0;
  double roughness = 0;  // how far a pixel is from the mean of those over and under it: 0 for even shading
};

inline double brightness(const Image& image, std::int64_t x, std::int64_t y) {
  const std::uint8_t* rgb = &image.rgb[static_cast<std::size_t>(3 * (y * image.width + x))];
  return (rgb[0] + rgb[1] + rgb[2]) / 3.0;
}

inline Patch patch(const Image& image, Place2 at, std::int64_t r) {
  Patch sum;
  const auto cx = static_cast<std::int64_t>(at.x), cy = static_cast<std::int64_t>(at.y);
  for (std::int64_t y = cy - r; y <= cy + r; ++y) {
    for (std::int64_t x = cx - r; x <= cx + r; ++x) {
      const double around = 0.5 * (brightness(image, x, y - 1) + brightness(image, x, y + 1));
      sum.mean += brightness(image, x, y);
      sum.roughness += std::abs(brightness(image, x, y) - around);
    }
  }
  const auto count = static_cast<double>((2 * r + 1) * (2 * r + 1));
  return {sum.mean / count, sum.roughness / count};
}

}  // namespace sdtune::train::portrait
