#include "train/portrait/detailed/backdrop.h"

#include <algorithm>

#include "train/portrait/scene/background.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kSpan = 1.1f;

// Half the width of the blur in cells; a wall stands nearer than mountains.
int blur_radius(Place place) {
  switch (place) {
    case Place::kWall:
    case Place::kBricks:
      return 1;
    case Place::kCityNight:
    case Place::kForest:
      return 2;
    default:
      return 1;
  }
}

// Light on a wall comes from the key light's side.
float falloff(const Context& now, float x, float y) {
  if (now.place != Place::kWall && now.place != Place::kBricks) return 1.0f;
  return 1.0f + 0.22f * now.light.x * x + 0.12f * now.light.y * y;
}

}  // namespace

Backdrop::Backdrop(const Context& now) : colors_(static_cast<std::size_t>(kSide * kSide)) {
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const float x = ((static_cast<float>(column) + 0.5f) * 2.0f / kSide - 1.0f) * kSpan;
      const float y = ((static_cast<float>(row) + 0.5f) * 2.0f / kSide - 1.0f) * kSpan;
      colors_[static_cast<std::size_t>(row * kSide + column)] = background_at(now, x, y) * falloff(now, x, y);
    }
  }
  // Two boxes, one after the other, are nearly round.
  blur(blur_radius(now.place));
  blur(blur_radius(now.place));
}

void Backdrop::blur(int radius) {
  const float share = 1.0f / static_cast<float>(2 * radius + 1);
  std::vector<Vec3> rows(colors_.size());
  const auto cell = [](int row, int column) {
    return static_cast<std::size_t>(std::clamp(row, 0, kSide - 1) * kSide + std::clamp(column, 0, kSide - 1));
  };
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      Vec3 sum;
      for (int i = -radius; i <= radius; ++i) sum = sum + colors_[cell(row, column + i)];
      rows[cell(row, column)] = sum * share;
    }
  }
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      Vec3 sum;
      for (int i = -radius; i <= radius; ++i) sum = sum + rows[cell(row + i, column)];
      colors_[cell(row, column)] = sum * share;
    }
  }
}

Vec3 Backdrop::at(float x, float y) const {
  const float u = clamp((x / kSpan + 1.0f) * 0.5f * kSide - 0.5f, 0.0f, kSide - 1.001f);
  const float v = clamp((y / kSpan + 1.0f) * 0.5f * kSide - 0.5f, 0.0f, kSide - 1.001f);
  const int column = static_cast<int>(u), row = static_cast<int>(v);
  const float tx = u - static_cast<float>(column), ty = v - static_cast<float>(row);
  const auto* from = &colors_[static_cast<std::size_t>(row * kSide + column)];
  return mix(mix(from[0], from[1], tx), mix(from[kSide], from[kSide + 1], tx), ty);
}

}  // namespace sdtune::train::portrait
