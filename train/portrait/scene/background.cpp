#include "train/portrait/scene/background.h"

namespace sdtune::train::portrait {
namespace {

Vec3 wall(const Context& now, float x, float y) {
  const float vignette = 1.0f - 0.28f * (x * x + y * y);
  return mix(rgb_of(now.wall_color), Vec3{0.5f, 0.5f, 0.5f}, 0.25f) * (0.85f * vignette);
}

Vec3 beach(const Context& now, float x, float y) {
  const float horizon = 0.10f, shore = -0.28f;
  if (y > horizon) {
    const float cloud = smoothstep(0.55f, 0.8f, value_noise(2.5f * x, 6.0f * y, now.detail_seed));
    return mix(mix({0.40f, 0.66f, 0.92f}, {0.07f, 0.26f, 0.72f}, (y - horizon) / 0.9f), {0.9f, 0.9f, 0.9f},
               0.7f * cloud);
  }
  if (y > shore + 0.03f * sine_of_turns(x + hash_unit(1, 1, now.detail_seed))) {
    const float wave = value_noise(2.0f * x, 14.0f * y, now.detail_seed);
    return mix({0.01f, 0.16f, 0.34f}, {0.05f, 0.42f, 0.50f}, wave);
  }
  const float grain = value_noise(9.0f * x, 9.0f * y, now.detail_seed);
  return mix({0.66f, 0.50f, 0.27f}, {0.76f, 0.60f, 0.34f}, grain);
}

Vec3 forest(const Context& now, float x, float y) {
  const float leaves = value_noise(3.5f * x, 3.5f * y, now.detail_seed) * 0.7f +
                       value_noise(8.0f * x, 8.0f * y, now.detail_seed + 1) * 0.3f;
  Vec3 color = mix({0.004f, 0.035f, 0.006f}, {0.09f, 0.30f, 0.03f}, leaves);
  const float lane = x * 4.0f + 0.3f * value_noise(1.5f, 2.0f * y, now.detail_seed + 2);
  const float trunk = std::abs(lane - std::floor(lane) - 0.5f);
  const bool here = hash_unit(static_cast<int>(std::floor(lane)), 0, now.detail_seed) > 0.35f;
  if (here && trunk < 0.15f) color = mix({0.07f, 0.03f, 0.012f}, {0.13f, 0.065f, 0.03f}, leaves);
  if (y < -0.55f) color = mix({0.02f, 0.10f, 0.01f}, {0.06f, 0.18f, 0.02f}, leaves);
  return color;
}

Vec3 city_night(const Context& now, float x, float y) {
  const float column = std::floor(x * 4.0f);
  const float top = mix(-0.15f, 0.75f, hash_unit(static_cast<int>(column), 3, now.detail_seed));
  if (y > top) return mix({0.012f, 0.010f, 0.05f}, {0.002f, 0.002f, 0.015f}, saturate(y));
  const float wx = x * 12.0f, wy = y * 9.0f;
  const auto ix = static_cast<int>(std::floor(wx)), iy = static_cast<int>(std::floor(wy));
  const bool lit = hash_unit(ix, iy, now.detail_seed) > 0.52f;
  const bool pane = wx - std::floor(wx) > 0.35f && wy - std::floor(wy) > 0.4f;
  return lit && pane ? Vec3{0.95f, 0.66f, 0.20f} : Vec3{0.008f, 0.008f, 0.016f};
}

Vec3 mountains(const Context& now, float x, float y) {
  const float ridge = 0.28f + 0.34f * (value_noise(2.2f * x, 0.5f, now.detail_seed) - 0.3f) +
                      0.06f * value_noise(6.0f * x, 1.5f, now.detail_seed);
  if (y > ridge) return mix({0.42f, 0.60f, 0.86f}, {0.13f, 0.30f, 0.66f}, saturate(y));
  const float snowline = ridge - 0.16f - 0.14f * value_noise(7.0f * x, 3.0f, now.detail_seed);
  if (y > snowline) return {0.82f, 0.85f, 0.90f};
  if (y > -0.35f)
    return mix({0.10f, 0.12f, 0.17f}, {0.17f, 0.19f, 0.25f}, value_noise(5.0f * x, 5.0f * y, now.detail_seed));
  return {0.78f, 0.82f, 0.88f};
}

Vec3 bricks(const Context& now, float x, float y) {
  const float v = y * 4.5f;
  const auto row = static_cast<int>(std::floor(v));
  const float u = x * 2.4f + (row & 1 ? 0.5f : 0.0f);
  const auto column = static_cast<int>(std::floor(u));
  const float fu = u - std::floor(u), fv = v - std::floor(v);
  if (fu < 0.08f || fv < 0.15f) return {0.36f, 0.33f, 0.30f};
  return mix({0.22f, 0.055f, 0.032f}, {0.36f, 0.10f, 0.06f}, hash_unit(column, row, now.detail_seed));
}

}  // namespace

Vec3 background_at(const Context& now, float x, float y) {
  switch (now.place) {
    case Place::kWall:
      return wall(now, x, y);
    case Place::kBeach:
      return beach(now, x, y);
    case Place::kForest:
      return forest(now, x, y);
    case Place::kCityNight:
      return city_night(now, x, y);
    case Place::kMountains:
      return mountains(now, x, y);
    case Place::kBricks:
      return bricks(now, x, y);
  }
  return {};
}

}  // namespace sdtune::train::portrait
