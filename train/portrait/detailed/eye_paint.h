// Eyes: the eyeball between the lids, lashes, the lid's fold.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/figure.h"

namespace sdtune::train::portrait {

// Changes the skin's surface at q, in head coordinates, where the eyes are.
void paint_eyes(const Figure& figure, Vec3 q, CoatedPoint& surface);

}  // namespace sdtune::train::portrait
