// The direction and the colour of strands of hair over head and chin.
#pragma once

#include "train/portrait/detailed/face_measures.h"

namespace sdtune::train::portrait {

// Coordinates of a point among the strands: `across` counts from strand to strand, `along` from root to tip.
struct Strand {
  float across = 0, along = 0;
  Vec3 tangent{0, -1, 0};  // unit, in the surface
};

// q and the unit normal in head coordinates.
Strand hair_strand(const Identity& who, Vec3 q, Vec3 normal);
Strand beard_strand(Vec3 q, Vec3 normal);

// [0, 1): smooth along a strand, another number for the next one; `per_unit` strands a unit of length.
float strand_noise(const Strand& strand, float per_unit, std::uint32_t seed);

// With its streak and the strands that age makes grey; q in head coordinates.
Vec3 hair_color_at(const Identity& who, const FaceMeasures& face, Vec3 q, const Strand& strand);

}  // namespace sdtune::train::portrait
