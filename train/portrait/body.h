// The portrayed body as a signed distance field: head, hair, beard, hat, glasses, neck and clothes.
#pragma once

#include "train/portrait/person.h"

namespace sdtune::train::portrait {

// What a surface point belongs to.
enum class Part { kSkin, kHair, kBeard, kHat, kFrame, kLens, kClothes, kEarring };

// An ellipsoid with its reciprocals, since one is evaluated millions of times a picture.
struct Ellipsoid {
  Vec3 center;
  Vec3 inverse_radii;

  static Ellipsoid of(Vec3 center, Vec3 radii) { return {center, {1.0f / radii.x, 1.0f / radii.y, 1.0f / radii.z}}; }
  float distance(Vec3 p) const {
    const Vec3 q = (p - center) * inverse_radii;
    const float k0 = length(q);
    const float k1 = length(q * inverse_radii);
    return k0 * (k0 - 1.0f) / std::max(k1, 1e-6f);
  }
};

// The torso is modelled this much lower than it is drawn: a short neck leaves more pixels to the face.
inline constexpr float kShoulderLift = 0.20f;

// Units: a head is about 1.7 high; x to the viewer's right, y up, z to the viewer; the head turns about the origin.
class Body {
 public:
  Body(const Identity& who, const Context& now);

  // A lower bound of the distance to the nearest surface, exact near it.
  float distance(Vec3 p) const;
  Part part_at(Vec3 p) const;
  Vec3 to_head(Vec3 p) const { return head_turn_.rotate(p); }
  Vec3 to_body(Vec3 p) const { return body_turn_.rotate(p - Vec3{0, kShoulderLift, 0}); }
  const Identity& who() const { return who_; }
  const Context& now() const { return now_; }

  // Where the face's features lie, in head coordinates.
  float eye_x() const { return eye_x_; }
  float mouth_y() const { return mouth_y_; }
  float face_width() const { return face_width_; }
  float face_length() const { return face_length_; }

 private:
  float skin(Vec3 q) const;  // q in head coordinates
  float hair(Vec3 q) const;
  float hair_volume(Vec3 q, float cap) const;
  float beard(Vec3 q) const;
  float hat(Vec3 q) const;
  float frame(Vec3 q) const;
  float lens(Vec3 q) const;
  float earring(Vec3 q) const;
  float neck(Vec3 p) const;     // p in the world
  float clothes(Vec3 p) const;  // p in body coordinates
  template <typename Visit>
  void visit_parts(Vec3 p, Visit&& visit) const;

  Identity who_;
  Context now_;
  Rotation head_turn_, body_turn_;
  float face_width_, face_length_, eye_x_, mouth_y_, ear_size_, nose_radius_;
  Ellipsoid skull_, jaw_, chin_, cheek_, ear_, hair_cap_, beard_, torso_;
  Vec3 nose_tip_;
};

}  // namespace sdtune::train::portrait
