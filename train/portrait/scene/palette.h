// Colours of people, in linear light; those of things are in attributes.h.
#pragma once

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

// Skin without marks or blush.
Vec3 plain_skin(const Identity& who);
// hue in [0, 1]: brown for most, then green, blue, grey.
Vec3 iris_color(float hue);
// A saturated colour of the wheel, hue in [0, 1].
Vec3 rgb_of_hue(float hue);
// 1 gold, 2 red, 3 turquoise.
Vec3 earring_color(int earrings);

}  // namespace sdtune::train::portrait
