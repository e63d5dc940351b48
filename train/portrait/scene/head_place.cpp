#include "train/portrait/scene/head_place.h"

#include <cmath>

namespace sdtune::train::portrait {
namespace {

// Of the widest and longest heads, in the body's units.
constexpr float kCenterY = 0.02f;
constexpr float kRadiusX = 0.98f;
constexpr float kRadiusY = 1.08f;

}  // namespace

float HeadPlace::distance(float at_x, float at_y) const {
  return std::hypot((at_x - x) / radius_x, (at_y - y) / radius_y);
}

HeadPlace head_place(const Context& now) {
  const float scale = now.zoom / kHalfHeight;
  return {.x = now.shift_x * scale,
          .y = (kCenterY - kCameraY + now.shift_y) * scale,
          .radius_x = kRadiusX * scale,
          .radius_y = kRadiusY * scale};
}

}  // namespace sdtune::train::portrait
