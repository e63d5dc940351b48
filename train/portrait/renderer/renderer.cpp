#include "train/portrait/renderer/renderer.h"

#include <array>
#include <stdexcept>

#include "train/portrait/detailed/portrait_tracer.h"
#include "train/portrait/renderer/surface.h"
#include "train/portrait/scene/background.h"
#include "train/portrait/scene/ray_march.h"
#include "train/portrait/scene/samples.h"
#include "train/portrait/scene/style.h"

namespace sdtune::train::portrait {
namespace {

constexpr MarchLimits kLimits{.steps = 40, .hit = 0.006f, .trust = 0.9f, .least_step = 0.012f};
constexpr ShadowLimits kShadow{.steps = 9, .begin = 0.10f, .least_step = 0.10f, .most_step = 0.45f, .sharpness = 5.0f};

// What the colour of a point takes besides its surface.
struct Light {
  Vec3 normal, view;
  float reaching;  // from the key light
  float openness;  // to the sky
};

Vec3 lit(const Context& now, const Surface& surface, const Light& light) {
  const float facing = std::max(dot(light.normal, now.light), 0.0f);
  const float key = facing > 0 ? facing * light.reaching : 0.0f;
  const float sky = (0.55f + 0.45f * light.normal.y) * light.openness;
  const Vec3 half = normalize(now.light - light.view);
  const float s = std::max(dot(light.normal, half), 0.0f);
  const float s4 = s * s * s * s;
  const float highlight = surface.gloss * s4 * s4 * s4 * key;
  const Vec3 sun{1.05f + 0.10f * now.warmth, 1.0f, 0.95f - 0.14f * now.warmth};
  const Vec3 shade{0.46f, 0.48f, 0.54f};
  return surface.albedo * (sun * (0.95f * key) + shade * sky) + sun * (0.55f * highlight);
}

std::array<Sample, 4> trace(const Body& body, const Block& block) {
  const Context& now = body.now();
  const Rays rays = rays_through(now, block);
  // Only the two spheres that hold head and torso are marched.
  const Reach reach = reach_of(sphere_span(rays, {0, 0.15f, 0}, 1.85f), sphere_span(rays, {0, -2.15f, -0.2f}, 1.60f));
  const Hits hits = march(body, rays, reach, kLimits);
  std::array<Sample, 4> samples;
  for (int lane = 0; lane < 4; ++lane) {
    if (!hits.found.at(lane)) samples[lane] = {background_at(now, block.u.at(lane), block.v.at(lane)), -1, 1e3f};
  }
  if (!any(hits.found)) return samples;
  const Vec3x4 points = rays.at(hits.t);
  const Vec3x4 normals = normals_at(body, points, 0.012f);
  const Mask4 facing = hits.found & (dot(normals, now.light) > 0.0f);
  const Float4 reaching = light_reaching(body, points + normals * 0.02f, now.light, facing, kShadow);
  const Float4 open = openness(body, points, normals);
  for (int lane = 0; lane < 4; ++lane) {
    if (!hits.found.at(lane)) continue;
    const Vec3 p = point(points, lane);
    const Part part = body.part_at(p);
    const Light light{point(normals, lane), point(rays.directions, lane), reaching.at(lane), open.at(lane)};
    samples[lane] = {lit(now, surface_at(body, part, p), light), static_cast<int>(part), hits.t.at(lane)};
  }
  return samples;
}

SampleGrid trace_all(const Body& body, std::int64_t side) {
  SampleGrid grid{side, std::vector<Sample>(static_cast<std::size_t>(side * side))};
  const float scale = 2.0f / static_cast<float>(side);
  const auto u_of = [scale](std::int64_t x) { return (static_cast<float>(x) + 0.5f) * scale - 1.0f; };
  const auto v_of = [scale](std::int64_t y) { return 1.0f - (static_cast<float>(y) + 0.5f) * scale; };
  for (std::int64_t y = 0; y < side; y += 2) {
    for (std::int64_t x = 0; x < side; x += 2) {
      const float left = u_of(x), right = u_of(x + 1), upper = v_of(y), lower = v_of(y + 1);
      const std::array<Sample, 4> samples = trace(body, {{left, right, left, right}, {upper, upper, lower, lower}});
      for (std::int64_t i = 0; i < 4; ++i) {
        grid.samples[static_cast<std::size_t>((y + (i >> 1)) * side + x + (i & 1))] = samples[i];
      }
    }
  }
  return grid;
}

std::uint8_t quantize(float v) {
  return static_cast<std::uint8_t>(saturate(v) * 255.0f + 0.5f);
}

}  // namespace

Image render(const Identity& who, const Context& now, std::int64_t size) {
  if (size < 16 || size > 1024) throw std::invalid_argument("portrait size must be 16..1024");
  const SampleGrid grid =
      now.detail == Detail::k128 ? trace_detailed(who, now, 2 * size) : trace_all(Body(who, now), 2 * size);
  Image image{size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * size * size))};
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      Vec3 sum;
      for (std::int64_t s = 0; s < 4; ++s)
        sum = sum + styled(grid, 2 * x + (s & 1), 2 * y + (s >> 1), now.style, now.detail);
      std::uint8_t* pixel = &image.rgb[static_cast<std::size_t>(3 * (y * size + x))];
      pixel[0] = quantize(sum.x * 0.25f);
      pixel[1] = quantize(sum.y * 0.25f);
      pixel[2] = quantize(sum.z * 0.25f);
    }
  }
  return image;
}

}  // namespace sdtune::train::portrait
