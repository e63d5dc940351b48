// Where a face's features lie and how large they are, as its person and its expression make them. Head coordinates: x
// to the viewer's right, y up, z to the viewer; a head is about 2 high and turns about the origin.
#pragma once

#include "train/portrait/scene/person.h"

namespace sdtune::train::portrait {

inline constexpr float kNowhere = 1e3f;  // how far away a part is that a person has not

struct FaceMeasures {
  FaceMeasures(const Identity& who, const Context& now);

  float width, length, jaw, chin;  // factors of the mean face
  // Eyes. Heights of the lids' edges are over the eye's middle, at their highest.
  float eye_x, eye_y, eye_half_width, upper_lid, lower_lid;
  float eyeball_radius, eyeball_z, iris_radius;
  // Brows: at x from the eye's middle (outwards positive), y = brow_y + slope x - arch x^2.
  float brow_y, brow_slope, brow_arch, brow_half_height;
  // Mouth: its line is y = mouth_y + bend (x^2 - w^2 / 3), open by `gap` in the middle.
  float mouth_y, mouth_half_width, mouth_bend, mouth_gap, upper_lip, lower_lip;
  float nose_y, nose_z, nose_width;  // of the tip
  float ear;                         // size, a factor
  float smile;                       // 0..1: how much the cheeks rise
  float wrinkles;                    // 0 young, 1 old
  float hairline;                    // y of the hair's edge over the forehead

  // Of the mouth's line over it: 0 on the line of a closed mouth.
  template <Number F>
  F over_mouth(F x, F y) const {
    return y - mouth_y - mouth_bend * (x * x - 0.33f * mouth_half_width * mouth_half_width);
  }
  // How far the lids' edges are over the eye's middle; `along` is -1 in the inner corner, 1 in the outer.
  float upper_lid_at(float along) const;
  float lower_lid_at(float along) const;
};

}  // namespace sdtune::train::portrait
