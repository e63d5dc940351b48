// How light falls on a coated point: a key light with its shadow, the sky, a rim light from behind.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Around one point, in the world.
struct LightAt {
  Vec3 view;       // unit, from the camera to the point
  float reaching;  // of the key light, [0, 1]
  float open;      // to the sky, [0, 1]
};

// Linear light; normal and tangent of the surface are in the world here.
Vec3 lit_color(const Context& now, const CoatedPoint& surface, const LightAt& light);

}  // namespace sdtune::train::portrait
