// The whole portrayed figure as a signed distance field: head, hair, beard, what it wears.
#pragma once

#include <array>

#include "train/portrait/detailed/hair_shape.h"
#include "train/portrait/detailed/head_shape.h"
#include "train/portrait/detailed/outfit_shape.h"
#include "train/portrait/scene/samples.h"

namespace sdtune::train::portrait {

class Figure {
 public:
  Figure(const Identity& who, const Context& now);

  // A lower bound of the distance to the nearest surface, of four points at once.
  Float4 distance(Vec3x4 p) const;
  // Which part is nearest to each point.
  std::array<Part, 4> parts_at(Vec3x4 p) const;

  Vec3 to_head(Vec3 p) const { return head_turn_.rotate(p); }
  Vec3 from_head(Vec3 q) const { return head_turn_.unrotate(q); }
  template <Number F>
  Vec3Of<F> to_body(Vec3Of<F> p) const {
    return body_turn_.rotate(p - Vec3{0, kTorsoLift, 0});
  }
  const Identity& who() const { return who_; }
  const Context& now() const { return now_; }
  const FaceMeasures& face() const { return face_; }
  const OutfitShape& outfit() const { return outfit_; }
  // From the head, in its coordinates, to the camera and to the key light.
  Vec3 camera() const { return camera_; }
  Vec3 light() const { return light_; }

 private:
  // visit(part, distance, where it counts) for every part that may be near.
  template <typename Visit>
  void visit_parts(Vec3x4 p, Visit&& visit) const;

  Identity who_;
  Context now_;
  FaceMeasures face_;
  Rotation head_turn_, body_turn_;
  HeadShape head_;
  HairShape hair_;
  OutfitShape outfit_;
  Vec3 camera_, light_;
};

}  // namespace sdtune::train::portrait
