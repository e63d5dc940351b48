// What is painted on the head rather than modelled: eyes, brows, mouth, blush, marks.
#pragma once

#include "train/portrait/renderer/body.h"

namespace sdtune::train::portrait {

// The skin's colour at q, a point of the head's surface in head coordinates; linear light.
Vec3 painted_skin(const Body& body, Vec3 q);

}  // namespace sdtune::train::portrait
