#include "train/portrait/renderer/renderer.h"

#include <array>
#include <stdexcept>

#include "train/portrait/renderer/background.h"
#include "train/portrait/renderer/head_place.h"
#include "train/portrait/renderer/samples.h"
#include "train/portrait/renderer/style.h"
#include "train/portrait/renderer/surface.h"

namespace sdtune::train::portrait {
namespace {

constexpr int kMaxSteps = 40;
constexpr float kHit = 0.006f;

// Four rays from one eye.
struct Rays {
  Vec3 origin;
  Vec3x4 directions;
  Vec3x4 at(Float4 t) const { return origin + directions * t; }
};

Vec3 point(const Vec3x4& points, int lane) {
  return {points.x.at(lane), points.y.at(lane), points.z.at(lane)};
}

// Where each ray enters and leaves a sphere, where it `meets` it.
struct Span {
  Float4 enter, leave;
  Mask4 meets;
};

Span sphere_span(const Rays& rays, Vec3 center, float radius) {
  const Vec3 oc = rays.origin - center;
  const Float4 b = dot(oc, rays.directions);
  const Float4 disc = b * b - (dot(oc, oc) - radius * radius);
  const Float4 half = root(most(disc, Float4(0.0f)));
  return {-b - half, -b + half, !(disc < 0.0f)};
}

// The distance along each ray to the body; where it is `found`.
struct Hits {
  Float4 t;
  Mask4 found;
};

// Only the two spheres that hold head and torso are marched.
Hits march(const Body& body, const Rays& rays) {
  constexpr float kFar = 1e3f;
  const Span head = sphere_span(rays, {0, 0.15f, 0}, 1.85f);
  const Span torso = sphere_span(rays, {0, -2.15f, -0.2f}, 1.60f);
  const Float4 end = most(select(head.meets, head.leave, 0.0f), select(torso.meets, torso.leave, 0.0f));
  Hits hits{least(select(head.meets, head.enter, kFar), select(torso.meets, torso.enter, kFar)), Mask4()};
  Mask4 marching = hits.t < end;
  for (int step = 0; step < kMaxSteps && any(marching); ++step) {
    const Float4 d = body.distance(rays.at(hits.t));
    const Mask4 hit = marching & (d < kHit);
    hits.found = {hits.found.lanes | hit.lanes};
    marching = marching & !hit;
    hits.t = select(marching, hits.t + most(d * 0.9f, Float4(0.012f)), hits.t);
    marching = marching & (hits.t < end);
  }
  return hits;
}

Vec3x4 normals_at(const Body& body, const Vec3x4& p) {
  constexpr float kStep = 0.012f;
  constexpr Vec3 kCorners[] = {{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}};
  Vec3x4 sum;
  for (const Vec3& corner : kCorners) sum = sum + corner * body.distance(p + corner * kStep);
  return normalize(sum);
}

// 0 in full shadow, 1 in full light: how near the way to the light comes to the body. Only for `lit` points.
Float4 light_reaching(const Body& body, const Vec3x4& p, Vec3 light, Mask4 lit) {
  constexpr float kDark = 0.02f;
  Float4 reaching = 1.0f, t = 0.10f;
  for (int step = 0; step < 9; ++step) {
    const Mask4 going = lit & (t < 2.2f) & !(reaching < kDark);
    if (!any(going)) break;
    const Float4 d = body.distance(p + light * t);
    reaching = select(going, least(reaching, 5.0f * d / t), reaching);
    t = select(going, t + clamp(d, 0.10f, 0.45f), t);
  }
  return select(reaching < kDark, 0.0f, saturate(reaching));
}

Float4 openness(const Body& body, const Vec3x4& p, const Vec3x4& normals) {
  const Float4 near = body.distance(p + normals * 0.08f), far = body.distance(p + normals * 0.28f);
  return saturate(0.25f + 0.45f * near / 0.08f * 0.5f + 0.55f * far / 0.28f);
}

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

// Image coordinates of two by two samples.
struct Block {
  Float4 u, v;
};

Rays rays_through(const Context& now, const Block& block) {
  const Vec3 eye{-now.shift_x, kCameraY - now.shift_y, kCameraZ};
  const Vec3x4 targets{block.u * kHalfHeight / now.zoom - now.shift_x,
                       block.v * kHalfHeight / now.zoom + kCameraY - now.shift_y, 0};
  return {eye, normalize(targets - eye)};
}

std::array<Sample, 4> trace(const Body& body, const Block& block) {
  const Context& now = body.now();
  const Rays rays = rays_through(now, block);
  const Hits hits = march(body, rays);
  std::array<Sample, 4> samples;
  for (int lane = 0; lane < 4; ++lane) {
    if (!hits.found.at(lane)) samples[lane] = {background_at(now, block.u.at(lane), block.v.at(lane)), -1, 1e3f};
  }
  if (!any(hits.found)) return samples;
  const Vec3x4 points = rays.at(hits.t);
  const Vec3x4 normals = normals_at(body, points);
  const Mask4 facing = hits.found & (dot(normals, now.light) > 0.0f);
  const Float4 reaching = light_reaching(body, points + normals * 0.02f, now.light, facing);
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
  const Body body(who, now);
  const SampleGrid grid = trace_all(body, 2 * size);
  Image image{size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * size * size))};
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      Vec3 sum;
      for (std::int64_t s = 0; s < 4; ++s) sum = sum + styled(grid, 2 * x + (s & 1), 2 * y + (s >> 1), now.style);
      std::uint8_t* pixel = &image.rgb[static_cast<std::size_t>(3 * (y * size + x))];
      pixel[0] = quantize(sum.x * 0.25f);
      pixel[1] = quantize(sum.y * 0.25f);
      pixel[2] = quantize(sum.z * 0.25f);
    }
  }
  return image;
}

}  // namespace sdtune::train::portrait
