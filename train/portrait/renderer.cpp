#include "train/portrait/renderer.h"

#include <optional>
#include <stdexcept>

#include "train/portrait/background.h"
#include "train/portrait/camera.h"
#include "train/portrait/samples.h"
#include "train/portrait/style.h"
#include "train/portrait/surface.h"

namespace sdtune::train::portrait {
namespace {

constexpr int kMaxSteps = 40;
constexpr float kHit = 0.006f;

struct Ray {
  Vec3 origin, direction;
  Vec3 at(float t) const { return origin + direction * t; }
};

// Where the ray enters and leaves a sphere, or nothing.
std::optional<Vec2> sphere_span(const Ray& ray, Vec3 center, float radius) {
  const Vec3 oc = ray.origin - center;
  const float b = dot(oc, ray.direction);
  const float disc = b * b - (dot(oc, oc) - radius * radius);
  if (disc < 0) return std::nullopt;
  const float root = std::sqrt(disc);
  return Vec2{-b - root, -b + root};
}

// The distance along the ray to the body, or nothing. Only the two spheres that hold head and torso are marched.
std::optional<float> march(const Body& body, const Ray& ray) {
  const auto head = sphere_span(ray, {0, 0.15f, 0}, 1.85f);
  const auto torso = sphere_span(ray, {0, -2.15f, -0.2f}, 1.60f);
  if (!head && !torso) return std::nullopt;
  float t = std::min(head ? head->x : 1e3f, torso ? torso->x : 1e3f);
  const float end = std::max(head ? head->y : 0.0f, torso ? torso->y : 0.0f);
  for (int step = 0; step < kMaxSteps && t < end; ++step) {
    const float d = body.distance(ray.at(t));
    if (d < kHit) return t;
    t += std::max(d * 0.9f, 0.012f);
  }
  return std::nullopt;
}

Vec3 normal_at(const Body& body, Vec3 p) {
  constexpr float kStep = 0.012f;
  constexpr Vec3 kCorners[] = {{1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}, {1, 1, 1}};
  Vec3 sum;
  for (const Vec3& corner : kCorners) sum = sum + corner * body.distance(p + corner * kStep);
  return normalize(sum);
}

// 0 in full shadow, 1 in full light: how near the way to the light comes to the body.
float light_reaching(const Body& body, Vec3 p, Vec3 light) {
  float reaching = 1.0f, t = 0.10f;
  for (int step = 0; step < 9 && t < 2.2f; ++step) {
    const float d = body.distance(p + light * t);
    reaching = std::min(reaching, 5.0f * d / t);
    if (reaching < 0.02f) return 0.0f;
    t += clamp(d, 0.10f, 0.45f);
  }
  return saturate(reaching);
}

float openness(const Body& body, Vec3 p, Vec3 normal) {
  const float near = body.distance(p + normal * 0.08f), far = body.distance(p + normal * 0.28f);
  return saturate(0.25f + 0.45f * near / 0.08f * 0.5f + 0.55f * far / 0.28f);
}

Vec3 lit(const Body& body, Vec3 p, Vec3 view) {
  const Context& now = body.now();
  const Surface surface = surface_at(body, body.part_at(p), p);
  const Vec3 normal = normal_at(body, p);
  const float facing = std::max(dot(normal, now.light), 0.0f);
  const float key = facing > 0 ? facing * light_reaching(body, p + normal * 0.02f, now.light) : 0.0f;
  const float sky = (0.55f + 0.45f * normal.y) * openness(body, p, normal);
  const Vec3 half = normalize(now.light - view);
  const float s = std::max(dot(normal, half), 0.0f);
  const float s4 = s * s * s * s;
  const float highlight = surface.gloss * s4 * s4 * s4 * key;
  const Vec3 sun{1.05f + 0.10f * now.warmth, 1.0f, 0.95f - 0.14f * now.warmth};
  const Vec3 shade{0.46f, 0.48f, 0.54f};
  return surface.albedo * (sun * (0.95f * key) + shade * sky) + sun * (0.55f * highlight);
}

Sample trace(const Body& body, float u, float v) {
  const Context& now = body.now();
  const Vec3 target{u * kHalfHeight / now.zoom - now.shift_x, v * kHalfHeight / now.zoom + kCameraY - now.shift_y, 0};
  const Ray ray{{-now.shift_x, kCameraY - now.shift_y, kCameraZ},
                normalize(target - Vec3{-now.shift_x, kCameraY - now.shift_y, kCameraZ})};
  const std::optional<float> t = march(body, ray);
  if (!t) return {background_at(now, u, v), -1, 1e3f};
  const Vec3 p = ray.at(*t);
  return {lit(body, p, ray.direction), static_cast<int>(body.part_at(p)), *t};
}

SampleGrid trace_all(const Body& body, std::int64_t side) {
  SampleGrid grid{side, std::vector<Sample>(static_cast<std::size_t>(side * side))};
  const float scale = 2.0f / static_cast<float>(side);
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      const float u = (static_cast<float>(x) + 0.5f) * scale - 1.0f;
      const float v = 1.0f - (static_cast<float>(y) + 0.5f) * scale;
      grid.samples[static_cast<std::size_t>(y * side + x)] = trace(body, u, v);
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
