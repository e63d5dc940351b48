// Lips, and between them teeth and tongue.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/figure.h"

namespace sdtune::train::portrait {

// Changes the skin's surface at q, in head coordinates, where the mouth is.
void paint_mouth(const Figure& figure, Vec3 q, CoatedPoint& surface);

}  // namespace sdtune::train::portrait
