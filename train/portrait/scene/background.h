// The place behind the person.
#pragma once

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Linear-light colour at (x, y): x in [-1, 1] left to right, y in [-1, 1] bottom to top.
Vec3 background_at(const Context& now, float x, float y);

}  // namespace sdtune::train::portrait
