// The surfaces of what the person wears, and of the glass in front of the eyes.
#pragma once

#include "train/portrait/detailed/coat.h"
#include "train/portrait/detailed/figure.h"

namespace sdtune::train::portrait {

CoatedPoint clothes_at(const Figure& figure, Vec3 p, Vec3 normal);  // in body coordinates
CoatedPoint hat_at(const Figure& figure, Vec3 q, Vec3 normal);      // in head coordinates, as those below
CoatedPoint frame_at(const Figure& figure, Vec3 q, Vec3 normal);
CoatedPoint lens_at(const Figure& figure, Vec3 q, Vec3 normal);
CoatedPoint earring_at(const Figure& figure, Vec3 q, Vec3 normal);

// What clear lenses add to the colour of the point q seen through them: their reflection. Nothing without glasses.
Vec3 glass_reflection(const Figure& figure, Vec3 q);

}  // namespace sdtune::train::portrait
