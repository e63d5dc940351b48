// Hair: what is seen of its volume, and where it grows out of the skin.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/figure.h"

namespace sdtune::train::portrait {

// Surfaces of the volumes; q and the unit normal in head coordinates.
CoatedPoint hair_at(const Figure& figure, Vec3 q, Vec3 normal);
CoatedPoint beard_at(const Figure& figure, Vec3 q, Vec3 normal);

// On the skin: strands at the hairline and a shaved scalp, strokes of the brows, beard's edge and stubble.
void paint_scalp(const Figure& figure, Vec3 q, CoatedPoint& surface);
void paint_brows(const Figure& figure, Vec3 q, CoatedPoint& surface);
void paint_beard_on_skin(const Figure& figure, Vec3 q, CoatedPoint& surface);

}  // namespace sdtune::train::portrait
