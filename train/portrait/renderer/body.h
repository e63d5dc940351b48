// The portrayed body as a signed distance field: head, hair, beard, hat, glasses, neck and clothes.
#pragma once

#include "train/portrait/scene/person.h"
#include "train/portrait/scene/samples.h"

namespace sdtune::train::portrait {

// The torso is modelled this much lower than in life: a short neck leaves more pixels to the face.
inline constexpr float kShoulderLift = 0.20f;

// Units: a head is about 1.7 high; x to the viewer's right, y up, z to the viewer; the head turns about the origin.
class Body {
 public:
  Body(const Identity& who, const Context& now);

  // A lower bound of the distance to the nearest surface, exact near it; of four points at once.
  Float4 distance(Vec3x4 p) const;
  Part part_at(Vec3 p) const;
  Vec3 to_head(Vec3 p) const { return head_turn_.rotate(p); }
  template <Number F>
  Vec3Of<F> to_body(Vec3Of<F> p) const {
    return body_turn_.rotate(p - Vec3{0, kShoulderLift, 0});
  }
  const Identity& who() const { return who_; }
  const Context& now() const { return now_; }

  // Where the face's features lie, in head coordinates.
  float eye_x() const { return eye_x_; }
  float mouth_y() const { return mouth_y_; }
  float face_width() const { return face_width_; }
  float face_length() const { return face_length_; }

 private:
  // Each part by itself. q in head coordinates.
  template <Number F>
  F skin(Vec3Of<F> q) const;
  template <Number F>
  F hair(Vec3Of<F> q) const;
  template <Number F>
  F hair_volume(Vec3Of<F> q, F cap) const;
  template <Number F>
  F beard(Vec3Of<F> q) const;
  template <Number F>
  F hat(Vec3Of<F> q) const;
  template <Number F>
  F frame(Vec3Of<F> q) const;
  template <Number F>
  F lens(Vec3Of<F> q) const;
  template <Number F>
  F earring(Vec3Of<F> q) const;
  template <Number F>
  F neck(Vec3Of<F> p) const;  // p in the world
  template <Number F>
  F clothes(Vec3Of<F> p) const;  // p in body coordinates
  // visit(part, distance, where it counts) for every part.
  template <Number F, typename Visit>
  void visit_parts(Vec3Of<F> p, Visit&& visit) const;

  Identity who_;
  Context now_;
  Rotation head_turn_, body_turn_;
  float face_width_, face_length_, eye_x_, mouth_y_, ear_size_, nose_radius_;
  Ellipsoid skull_, jaw_, chin_, cheek_, ear_, hair_cap_, beard_, torso_;
  Vec3 nose_tip_;
};

}  // namespace sdtune::train::portrait
