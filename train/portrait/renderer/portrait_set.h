// Which people there are: some to train on, some to validate with, and the reserved subjects that evaluation tunes on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "train/portrait/renderer/label.h"

namespace sdtune::train::portrait {

enum class PortraitSet { kTraining, kValidation, kReserved };
inline constexpr std::array<std::string_view, 3> kPortraitSetNames = {"training", "validation", "reserved"};

// People of a set are numbered from 0: 2^32 to train on, as many to validate with, 50 reserved.
std::uint64_t people_in(PortraitSet set);

// Images of one person are numbered from 0.
inline constexpr std::uint64_t kViewsOfPerson = std::uint64_t{1} << 16;

// The seeds of an image. No two images share an image seed, and none is above 2^50, so that JSON readers which hold
// numbers as doubles read it exactly. Throws std::invalid_argument for a person or view that there is not.
ImageSeeds image_seeds(PortraitSet set, std::uint64_t person, std::uint64_t view);

}  // namespace sdtune::train::portrait
