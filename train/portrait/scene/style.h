// From linear-light samples to display colours, in the image's style.
#pragma once

#include "train/portrait/scene/person.h"
#include "train/portrait/scene/samples.h"

namespace sdtune::train::portrait {

// Display-referred colour (sRGB, [0, 1]) of sample (x, y). Detail::k128 has darker pencils and softer steps of
// cartoons, since its shading is finer.
Vec3 styled(const SampleGrid& grid, std::int64_t x, std::int64_t y, Style style, Detail detail);

}  // namespace sdtune::train::portrait
