// The colour of a surface point before light falls on it: skin with its painted features, hair, cloth.
#pragma once

#include "train/portrait/renderer/body.h"

namespace sdtune::train::portrait {

struct Surface {
  Vec3 albedo;      // linear light
  float gloss = 0;  // strength of the highlight, [0, 1]
};

// p in the world, on the body's surface.
Surface surface_at(const Body& body, Part part, Vec3 p);

}  // namespace sdtune::train::portrait
