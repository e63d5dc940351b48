#include "train/portrait/detailed/portrait_tracer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "train/portrait/detailed/backdrop.h"
#include "train/portrait/detailed/hair_paint.h"
#include "train/portrait/detailed/lighting.h"
#include "train/portrait/detailed/outfit_paint.h"
#include "train/portrait/detailed/skin_paint.h"
#include "train/portrait/scene/ray_march.h"

namespace sdtune::train::portrait {
namespace {

constexpr MarchLimits kLimits{.steps = 96, .hit = 0.004f, .trust = 0.85f, .least_step = 0.006f};
constexpr ShadowLimits kShadow{.steps = 22,
                               .begin = 0.05f,
                               .least_step = 0.02f,
                               .most_step = 0.03f,
                               .sharpness = 5.0f,
                               .trust = 0.7f,
                               .growth = 0.24f};
constexpr float kLeast = 0.12f;  // of the key light, which is large, reaches into every shadow
constexpr float kNormalStep = 0.009f;

// Where head, torso and long hair are.
Reach figure_reach(const Rays& rays) {
  return reach_of(sphere_span(rays, {0, 0.15f, 0}, 1.85f), sphere_span(rays, {0, -2.15f, -0.2f}, 1.65f));
}

class Tracer {
 public:
  Tracer(const Identity& who, const Context& now) : figure_(who, now), backdrop_(now) {}

  std::array<Sample, 4> trace(const Block& block) const {
    const Context& now = figure_.now();
    const Rays rays = rays_through(now, block);
    Hits hits = march(figure_, rays, figure_reach(rays), kLimits);
    std::array<Sample, 4> samples;
    for (int lane = 0; lane < 4; ++lane) {
      if (!hits.found.at(lane)) samples[lane] = {backdrop_.at(block.u.at(lane), block.v.at(lane)), -1, 1e3f};
    }
    if (!any(hits.found)) return samples;
    // A march ends anywhere within its limit; shadows would show where.
    hits.t = hits.t + select(hits.found, clamp(figure_.distance(rays.at(hits.t)), -0.02f, 0.02f), 0.0f);
    const Vec3x4 points = rays.at(hits.t);
    const Vec3x4 normals = normals_at(figure_, points, kNormalStep);
    const Mask4 facing = hits.found & (dot(normals, now.light) > -0.25f);
    const Float4 reaching = light_reaching(figure_, points + normals * 0.03f, now.light, facing, kShadow);
    const Float4 open = openness(figure_, points, normals);
    const std::array<Part, 4> parts = figure_.parts_at(points);
    for (int lane = 0; lane < 4; ++lane) {
      if (!hits.found.at(lane)) continue;
      const Part part = parts[static_cast<std::size_t>(lane)];
      const LightAt light{point(rays.directions, lane), mix(kLeast, 1.0f, reaching.at(lane)), open.at(lane)};
      const Vec3 p = point(points, lane);
      const CoatedPoint surface = surface_of(part, p, point(normals, lane));
      Vec3 color = lit_color(now, surface, light);
      if (part != Part::kFrame && part != Part::kClothes) color = color + glass_reflection(figure_, figure_.to_head(p));
      samples[lane] = {color, static_cast<int>(part), hits.t.at(lane)};
    }
    return samples;
  }

 private:
  // Normal and tangent in the world.
  CoatedPoint surface_of(Part part, Vec3 p, Vec3 normal) const {
    if (part == Part::kClothes) {
      CoatedPoint surface = clothes_at(figure_, figure_.to_body(p), normal);
      return surface;  // folds are turned as little as the body is
    }
    const Vec3 q = figure_.to_head(p), n = figure_.to_head(normal);
    CoatedPoint surface = head_surface(part, q, n);
    surface.normal = figure_.from_head(surface.normal);
    surface.tangent = figure_.from_head(surface.tangent);
    return surface;
  }

  CoatedPoint head_surface(Part part, Vec3 q, Vec3 n) const {
    switch (part) {
      case Part::kHair:
        return hair_at(figure_, q, n);
      case Part::kBeard:
        return beard_at(figure_, q, n);
      case Part::kHat:
        return hat_at(figure_, q, n);
      case Part::kFrame:
        return frame_at(figure_, q, n);
      case Part::kLens:
        return lens_at(figure_, q, n);
      case Part::kEarring:
        return earring_at(figure_, q, n);
      default:
        return skin_at(figure_, q, n);
    }
  }

  Figure figure_;
  Backdrop backdrop_;
};

float brightness(Vec3 v) {
  return 0.3f * v.x + 0.6f * v.y + 0.1f * v.z;
}

// Whether two pixels look the same: one part, one depth, nearly one colour.
bool alike(const Sample& a, const Sample& b) {
  if (a.part != b.part || std::abs(a.depth - b.depth) > 0.10f) return false;
  const float x = brightness(a.color), y = brightness(b.color);
  return std::abs(x - y) < 0.012f + 0.10f * most(x, y);
}

// Image coordinates of places in a grid: a sample is 1 wide.
class GridPlaces {
 public:
  explicit GridPlaces(std::int64_t side) : scale_(2.0f / static_cast<float>(side)) {}
  // Four samples, `apart` from each other, the first of them at (x, y).
  Block square(float x, float y, float apart) const {
    const float left = x * scale_ - 1.0f, right = (x + apart) * scale_ - 1.0f;
    const float upper = 1.0f - y * scale_, lower = 1.0f - (y + apart) * scale_;
    return {{left, right, left, right}, {upper, upper, lower, lower}};
  }

 private:
  float scale_;
};

void put(SampleGrid& grid, std::int64_t x, std::int64_t y, const std::array<Sample, 4>& four) {
  for (std::int64_t i = 0; i < 4; ++i) {
    grid.samples[static_cast<std::size_t>((y + (i >> 1)) * grid.side + x + (i & 1))] =
        four[static_cast<std::size_t>(i)];
  }
}

SampleGrid empty_grid(std::int64_t side) {
  return {side, std::vector<Sample>(static_cast<std::size_t>(side * side))};
}

// One sample in the middle of every pixel.
SampleGrid trace_middles(const Tracer& tracer, const GridPlaces& places, std::int64_t pixels) {
  SampleGrid middles = empty_grid(pixels + (pixels & 1));
  for (std::int64_t y = 0; y < middles.side; y += 2) {
    for (std::int64_t x = 0; x < middles.side; x += 2) {
      const Block block = places.square(2.0f * static_cast<float>(x) + 1, 2.0f * static_cast<float>(y) + 1, 2.0f);
      put(middles, x, y, tracer.trace(block));
    }
  }
  return middles;
}

bool smooth_around(const SampleGrid& middles, std::int64_t x, std::int64_t y) {
  const Sample& here = middles.at(x, y);
  const std::int64_t last = middles.side - 1;
  return alike(here, middles.at(std::max<std::int64_t>(x - 1, 0), y)) &&
         alike(here, middles.at(std::min(x + 1, last), y)) &&
         alike(here, middles.at(x, std::max<std::int64_t>(y - 1, 0))) &&
         alike(here, middles.at(x, std::min(y + 1, last)));
}

}  // namespace

SampleGrid trace_detailed(const Identity& who, const Context& now, std::int64_t side) {
  const Tracer tracer(who, now);
  const GridPlaces places(side);
  const std::int64_t pixels = side / 2;
  const SampleGrid middles = trace_middles(tracer, places, pixels);
  SampleGrid grid = empty_grid(side);
  for (std::int64_t y = 0; y < pixels; ++y) {
    for (std::int64_t x = 0; x < pixels; ++x) {
      const Sample& here = middles.at(x, y);
      if (smooth_around(middles, x, y)) {
        put(grid, 2 * x, 2 * y, {here, here, here, here});
      } else {
        const Block block =
            places.square(2.0f * static_cast<float>(x) + 0.5f, 2.0f * static_cast<float>(y) + 0.5f, 1.0f);
        put(grid, 2 * x, 2 * y, tracer.trace(block));
      }
    }
  }
  return grid;
}

}  // namespace sdtune::train::portrait
