// What the person wears, as signed distance fields: hat, glasses, earrings, clothes.
#pragma once

#include "train/portrait/detailed/face_measures.h"
#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

// The torso is modelled this much lower than in life: a short neck leaves more pixels to the face.
inline constexpr float kTorsoLift = 0.16f;

class OutfitShape {
 public:
  OutfitShape(const Identity& who, const Context& now, const FaceMeasures& face);

  Float4 hat(Vec3x4 q) const;    // q in head coordinates
  Float4 frame(Vec3x4 q) const;  // of glasses
  Float4 lens(Vec3x4 q) const;   // of sunglasses; clear lenses are no surface, see glass_at
  Float4 earring(Vec3x4 q) const;
  Float4 clothes(Vec3x4 p) const;  // p in body coordinates

  bool has_hat() const { return hat_ != Hat::kNone; }
  bool has_glasses() const { return glasses_ != Glasses::kNone; }
  bool has_earrings() const { return earrings_ > 0; }
  // Inside a lens's outline, negative; x and y in head coordinates.
  float lens_outline(float x, float y) const;
  float glasses_z() const { return glasses_z_; }
  Vec3 earring_middle() const;  // of the right one's drop, in head coordinates

 private:
  Vec3 lobe() const;  // the right ear's
  Float4 torso(Vec3x4 p) const;

  Hat hat_;
  Glasses glasses_;
  Clothes clothes_;
  int earrings_;
  FaceMeasures face_;
  float glasses_z_;
  Ellipsoid beanie_, cap_, bill_, torso_;
};

}  // namespace sdtune::train::portrait
