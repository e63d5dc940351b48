// Lines that come with age, and those that a smile adds for the moment.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/face_measures.h"

namespace sdtune::train::portrait {

// Changes the skin's surface at q, in head coordinates: less light in a line, more beside it.
void paint_wrinkles(const FaceMeasures& face, Vec3 q, CoatedPoint& surface);

}  // namespace sdtune::train::portrait
