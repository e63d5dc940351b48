// The skin of the head and neck as a signed distance field.
#pragma once

#include "train/portrait/detailed/face_measures.h"
#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

class HeadShape {
 public:
  explicit HeadShape(const FaceMeasures& face);

  // q in head coordinates.
  Float4 distance(Vec3x4 q) const;
  // The skull and jaw alone, which hair and beards lie on.
  Float4 skull(Vec3x4 q) const { return smooth_min(skull_.distance(q), jaw_.distance(q), 0.20f); }
  // p in the world: the neck does not turn with the head.
  Float4 neck(Vec3x4 p) const;

 private:
  Float4 with_bones(Vec3x4 q, Vec3x4 m, Float4 d) const;
  Float4 with_nose(Vec3x4 q, Vec3x4 m, Float4 d) const;
  Float4 with_lips(Vec3x4 q, Vec3x4 m, Float4 d) const;
  Float4 with_ears(Vec3x4 m, Float4 d) const;

  FaceMeasures face_;
  Ellipsoid skull_, jaw_, chin_, jaw_corner_, cheekbone_, cheek_, socket_, muzzle_, ear_, ear_bowl_;
};

template <Number F>
Vec3Of<F> mirrored(Vec3Of<F> q) {
  return {magnitude(q.x), q.y, q.z};
}

}  // namespace sdtune::train::portrait
