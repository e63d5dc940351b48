#include "train/portrait/scene/style.h"

namespace sdtune::train::portrait {
namespace {

// The sRGB curve by square roots alone; error below 0.003.
float display(float v) {
  const float x = saturate(v);
  const float s1 = std::sqrt(x), s2 = std::sqrt(s1), s3 = std::sqrt(s2);
  return saturate(0.662002687f * s1 + 0.684122060f * s2 - 0.323583601f * s3 - 0.0225411470f * x);
}

Vec3 display(Vec3 v) {
  return {display(v.x), display(v.y), display(v.z)};
}

float luma(Vec3 v) {
  return 0.2126f * v.x + 0.7152f * v.y + 0.0722f * v.z;
}

// 1 where the sample's neighbourhood holds another part, a step in depth or a strong step in brightness.
float outline(const SampleGrid& grid, std::int64_t x, std::int64_t y, float brightness_step) {
  const std::int64_t reach = std::max<std::int64_t>(1, grid.side / 128);
  const Sample& here = grid.at(x, y);
  float strength = 0;
  for (const auto& [dx, dy] : {std::pair{reach, std::int64_t{0}},
                               {-reach, std::int64_t{0}},
                               {std::int64_t{0}, reach},
                               {std::int64_t{0}, -reach}}) {
    const std::int64_t nx = std::clamp<std::int64_t>(x + dx, 0, grid.side - 1);
    const std::int64_t ny = std::clamp<std::int64_t>(y + dy, 0, grid.side - 1);
    const Sample& there = grid.at(nx, ny);
    if (here.part != there.part || std::abs(here.depth - there.depth) > 0.25f) strength = 1.0f;
    const float step = std::abs(luma(display(here.color)) - luma(display(there.color)));
    strength = std::max(strength, saturate((step - brightness_step) * 6.0f));
  }
  return strength;
}

Vec3 sketch(const SampleGrid& grid, std::int64_t x, std::int64_t y, Detail detail) {
  constexpr float paper = 0.95f;
  const float tone = luma(display(grid.at(x, y).color));
  const float across = static_cast<float>(x + y) * 12.0f / static_cast<float>(grid.side);
  const float hatch = 0.5f + 0.5f * sine_of_turns(across);
  const bool fine = detail == Detail::k128;
  const float pencil = saturate((0.75f - tone) * (fine ? 1.20f : 0.75f)) * mix(0.75f, 1.0f, hatch);
  const float ink = std::max(pencil, 0.85f * outline(grid, x, y, fine ? 0.075f : 0.10f));
  const float v = paper * (1.0f - ink) + 0.12f * ink;
  return {v, v, v * 0.97f};
}

Vec3 cartoon(const SampleGrid& grid, std::int64_t x, std::int64_t y, Detail detail) {
  const Vec3 color = display(grid.at(x, y).color);
  const float brightness = std::max(luma(color), 1e-3f);
  const float steps = brightness * 4.0f, step = std::floor(steps);
  const float rise = detail == Detail::k128 ? smoothstep(0.30f, 0.70f, steps - step) - 0.25f : 0.0f;
  const float level = (step + 0.75f + rise) / 4.5f;
  const Vec3 flat = color * (level / brightness);
  const float grey = luma(flat);
  const Vec3 vivid = Vec3{grey, grey, grey} + (flat - Vec3{grey, grey, grey}) * 1.35f;
  return mix({saturate(vivid.x), saturate(vivid.y), saturate(vivid.z)}, {0.02f, 0.02f, 0.03f},
             outline(grid, x, y, 0.30f));
}

}  // namespace

Vec3 styled(const SampleGrid& grid, std::int64_t x, std::int64_t y, Style style, Detail detail) {
  switch (style) {
    case Style::kPhoto:
      return display(grid.at(x, y).color);
    case Style::kBlackWhite: {
      const float v = luma(display(grid.at(x, y).color));
      return {v, v, v};
    }
    case Style::kSketch:
      return sketch(grid, x, y, detail);
    case Style::kCartoon:
      return cartoon(grid, x, y, detail);
  }
  return {};
}

}  // namespace sdtune::train::portrait
