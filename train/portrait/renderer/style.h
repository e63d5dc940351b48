// From linear-light samples to display colours, in the image's style.
#pragma once

#include "train/portrait/renderer/attributes.h"
#include "train/portrait/renderer/samples.h"

namespace sdtune::train::portrait {

// Display-referred colour (sRGB, [0, 1]) of sample (x, y).
Vec3 styled(const SampleGrid& grid, std::int64_t x, std::int64_t y, Style style);

}  // namespace sdtune::train::portrait
