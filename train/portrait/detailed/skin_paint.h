// The skin of a face: tone, marks, freckles, brows, stubble, what age leaves.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/figure.h"

namespace sdtune::train::portrait {

// q and the unit normal in head coordinates.
CoatedPoint skin_at(const Figure& figure, Vec3 q, Vec3 normal);

}  // namespace sdtune::train::portrait
