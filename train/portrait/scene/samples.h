// The supersampled image between renderer and style.
#pragma once

#include <cstdint>
#include <vector>

#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

// What a surface point belongs to.
enum class Part { kSkin, kHair, kBeard, kHat, kFrame, kLens, kClothes, kEarring };

// One sample: linear-light colour, what it shows (-1: the background, else a Part), and how deep it lies.
struct Sample {
  Vec3 color;
  int part = -1;
  float depth = 1e3f;
};

struct SampleGrid {
  std::int64_t side = 0;  // samples
  std::vector<Sample> samples;
  const Sample& at(std::int64_t x, std::int64_t y) const { return samples[static_cast<std::size_t>(y * side + x)]; }
};

}  // namespace sdtune::train::portrait
