// What makes a skin this person's own: birthmark, mole, scar, freckles.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Changes the skin's surface at q, in head coordinates.
void paint_marks(const Identity& who, Vec3 q, CoatedPoint& surface);

}  // namespace sdtune::train::portrait
