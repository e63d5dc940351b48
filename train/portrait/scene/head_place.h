// The camera, and where in its image a head is.
#pragma once

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Units are the body's: a head is about 1.7 high and turns about the origin.
inline constexpr float kCameraZ = 8.0f;
inline constexpr float kCameraY = -0.20f;
inline constexpr float kHalfHeight = 1.65f;  // of the plane z = 0 that an image shows at zoom 1

// An ellipse in units of half an image: x to the right and y up from the middle, so an image spans [-1, 1].
struct HeadPlace {
  float x = 0, y = 0;
  float radius_x = 0, radius_y = 0;

  // 0 in the middle of the head, 1 on the ellipse.
  float distance(float at_x, float at_y) const;
};

// Holds face, ears and beard of every identity, and the hair's roots; hats and long hair reach out of it.
HeadPlace head_place(const Context& now);

}  // namespace sdtune::train::portrait
