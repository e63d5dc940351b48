// What makes a skin this person's own: birthmark, mole, scar, freckles.
#pragma once

#include <array>

#include "train/portrait/detailed/coat.h"
#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Changes the skin's surface at q, in head coordinates.
void paint_marks(const Identity& who, Vec3 q, CoatedPoint& surface);

// Four points of a mark on the face, x and y in head coordinates; of the first two, the person must have one.
std::array<Vec2, 4> birthmark_points(const Identity& who);
std::array<Vec2, 4> mole_points(const Identity& who);
std::array<Vec2, 4> scar_points();

}  // namespace sdtune::train::portrait
