// Where in its picture a head is.
#pragma once

#include "train/portrait/person.h"

namespace sdtune::train::portrait {

// An ellipse in units of half a picture: x to the right and y up from the middle, so a picture spans [-1, 1].
struct HeadPlace {
  float x = 0, y = 0;
  float radius_x = 0, radius_y = 0;

  // 0 in the middle of the head, 1 on the ellipse.
  float distance(float at_x, float at_y) const;
};

// Holds face, ears and beard of every identity, and the hair's roots; hats and long hair reach out of it.
HeadPlace head_place(const Context& now);

}  // namespace sdtune::train::portrait
