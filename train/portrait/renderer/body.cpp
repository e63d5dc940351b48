#include "train/portrait/renderer/body.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kFar = 1e3f;
constexpr float kHatLine = 0.42f;  // hair above it is under the hat
constexpr float kGlassesZ = 0.90f;

template <Number F>
Vec3Of<F> mirrored(Vec3Of<F> q) {
  return {magnitude(q.x), q.y, q.z};
}

}  // namespace

// Shape ranges are about twice what seems natural at first: at 64 px a gentler identity cannot be seen.
Body::Body(const Identity& who, const Context& now)
    : who_(who),
      now_(now),
      head_turn_(Rotation::from_turns(now.yaw, now.pitch, now.roll)),
      body_turn_(Rotation::from_turns(now.body_yaw, 0, 0)),
      face_width_(1 + 0.20f * who.face_width),
      face_length_(1 + 0.12f * who.face_length),
      eye_x_(0.31f * (1 + 0.22f * who.eye_distance)),
      mouth_y_(-0.47f * face_length_),
      ear_size_(1 + 0.45f * who.ear_size),
      nose_radius_(0.085f * (1 + 0.45f * who.nose_width)),
      skull_(Ellipsoid::of({0, 0.28f, -0.08f}, {0.74f * face_width_, 0.80f, 0.86f})),
      jaw_(Ellipsoid::of({0, -0.30f * face_length_, 0.10f},
                         {0.56f * (1 + 0.30f * who.jaw_width), 0.58f * face_length_, 0.64f})),
      chin_(Ellipsoid::of({0, -0.77f * face_length_, 0.42f}, {0.22f * (1 + 0.45f * who.chin_width), 0.17f, 0.19f})),
      cheek_(Ellipsoid::of({0.34f * face_width_, -0.17f, 0.46f}, {0.25f, 0.22f, 0.25f})),
      ear_(Ellipsoid::of({0.76f * face_width_, 0.02f, -0.06f}, {0.10f, 0.22f * ear_size_, 0.14f * ear_size_})),
      hair_cap_(Ellipsoid::of({0, 0.32f, -0.12f}, {0.82f * face_width_, 0.86f, 0.92f})),
      beard_(Ellipsoid::of({0, -0.36f * face_length_, 0.10f},
                           {0.62f * (1 + 0.28f * who.jaw_width), 0.64f * face_length_, 0.72f})),
      torso_(Ellipsoid::of({0, -2.45f, -0.25f}, {1.42f, 1.12f, 0.72f})),
      nose_tip_{0, -0.20f, 0.86f + 0.10f * who.nose_length} {}

template <Number F>
F Body::skin(Vec3Of<F> q) const {
  const Vec3Of<F> m = mirrored(q);
  F d = smooth_min(skull_.distance(q), jaw_.distance(q), 0.28f);
  d = smooth_min(d, chin_.distance(q), 0.14f);
  d = smooth_min(d, cheek_.distance(m), 0.14f);
  d = smooth_min(d, capsule(q, {0, 0.14f, 0.78f}, nose_tip_, nose_radius_), 0.07f);
  return smooth_min(d, ear_.distance(m), 0.05f);
}

// The volume of each style around the cap; the face is cut out of it.
template <Number F>
F Body::hair_volume(Vec3Of<F> q, F cap) const {
  switch (who_.hair_style) {
    case HairStyle::kBald:
      return kFar;
    case HairStyle::kShort:
      return cap;
    case HairStyle::kAfro: {
      const F bumps = 0.04f * sine_of_turns(q.x * 1.9f) * sine_of_turns(q.y * 1.9f) * sine_of_turns(q.z * 1.9f);
      return length(q - Vec3{0, 0.50f, -0.22f}) - 1.14f - bumps;
    }
    case HairStyle::kLong:
      return smooth_min(cap, ellipsoid(q - Vec3{0, -0.55f, -0.34f}, {0.98f * face_width_, 1.30f, 0.62f}), 0.15f);
    case HairStyle::kBob:
      return most(smooth_min(cap, ellipsoid(q - Vec3{0, -0.05f, -0.20f}, {1.04f * face_width_, 0.98f, 0.86f}), 0.1f),
                  -0.72f - q.y);
    case HairStyle::kBun:
      return least(cap, length(q - Vec3{0, 1.27f, -0.22f}) - 0.33f);
    case HairStyle::kMohawk:
      return ellipsoid(q - Vec3{0, 0.58f, -0.10f}, {0.15f, 0.92f, 0.98f});
    case HairStyle::kQuiff:
      return smooth_min(cap, ellipsoid(q - Vec3{0.12f, 1.02f, 0.45f}, {0.55f, 0.28f, 0.42f}), 0.12f);
  }
  return kFar;
}

template <Number F>
F Body::hair(Vec3Of<F> q) const {
  if (who_.hair_style == HairStyle::kBald) return kFar;
  F d = hair_volume(q, hair_cap_.distance(q));
  // The face must not be covered by hair: cut what is in front of a slanted plane below the hairline.
  const float hairline = 0.62f + 0.12f * who_.hairline;
  const F face = most(q.y - hairline, -(q.z - 0.22f + 0.35f * q.y * 0.5f));
  if (who_.hair_style != HairStyle::kMohawk) d = smooth_max(d, -face, 0.08f);
  const bool covered = now_.hat != Hat::kNone;
  return covered ? most(d, q.y - kHatLine) : d;
}

template <Number F>
F Body::beard(Vec3Of<F> q) const {
  switch (who_.facial_hair) {
    case FacialHair::kNone:
      return kFar;
    case FacialHair::kMoustache:
      return capsule(mirrored(q), {0.03f, mouth_y_ + 0.12f, 0.77f}, {0.24f, mouth_y_ + 0.05f, 0.66f}, 0.065f);
    case FacialHair::kGoatee:
      return ellipsoid(q - Vec3{0, -0.80f * face_length_, 0.54f}, {0.20f, 0.24f, 0.17f});
    case FacialHair::kBeard: {
      const F below = most(beard_.distance(q), q.y + 0.16f - 0.42f * magnitude(q.x));
      const F mouth = ellipsoid(q - Vec3{0, mouth_y_, 0.80f}, {0.21f, 0.10f, 0.40f});
      return most(below, -mouth);
    }
  }
  return kFar;
}

template <Number F>
F Body::hat(Vec3Of<F> q) const {
  const Vec3Of<F> c = q - Vec3{0, 0, -0.10f};
  const float w = face_width_;
  switch (now_.hat) {
    case Hat::kNone:
      return kFar;
    case Hat::kBeanie: {
      const F ribs = 0.012f * sine_of_turns(q.x * 5.0f);
      const F dome = most(ellipsoid(c - Vec3{0, 0.42f, 0}, {0.88f * w, 0.84f, 0.98f}), 0.40f - c.y) - ribs;
      const Vec3Of<F> fold{c.x / w, c.y - 0.46f, c.z / 1.08f};
      return least(least(dome, disc(fold, 0.94f, 0.16f, 0.07f)), length(c - Vec3{0, 1.34f, 0}) - 0.17f);
    }
    case Hat::kCap: {
      const F dome = most(ellipsoid(c - Vec3{0, 0.40f, 0}, {0.87f * w, 0.76f, 0.96f}), 0.40f - c.y);
      const F bill = ellipsoid(c - Vec3{0, 0.46f, 0.98f}, {0.58f * w, 0.07f, 0.56f});
      return least(dome, bill);
    }
    case Hat::kTopHat: {
      const Vec3Of<F> p{c.x / w, c.y, c.z};
      return least(disc(p - Vec3{0, 1.00f, 0}, 0.74f, 0.58f, 0.05f), disc(p - Vec3{0, 0.46f, 0}, 1.14f, 0.05f, 0.04f));
    }
    case Hat::kWideHat: {
      const Vec3Of<F> p{c.x / w, c.y, c.z};
      return least(disc(p - Vec3{0, 0.70f, 0}, 0.80f, 0.30f, 0.16f), disc(p - Vec3{0, 0.46f, 0}, 1.56f, 0.05f, 0.04f));
    }
  }
  return kFar;
}

template <Number F>
F Body::frame(Vec3Of<F> q) const {
  if (now_.glasses == Glasses::kNone) return kFar;
  const Vec3Of<F> m = mirrored(q);
  const Vec3Of<F> eye = m - Vec3{eye_x_, 0.07f, kGlassesZ};
  const F temple = capsule(m, {eye_x_ + 0.2f, 0.10f, kGlassesZ - 0.04f}, {0.78f * face_width_, 0.10f, 0.0f}, 0.028f);
  const F bridge = capsule(m, {0, 0.10f, kGlassesZ + 0.05f}, {eye_x_ - 0.17f, 0.10f, kGlassesZ}, 0.03f);
  F rim = kFar;
  if (now_.glasses == Glasses::kRound) rim = ring(eye, 0.225f, 0.042f);
  if (now_.glasses == Glasses::kSquare) {
    const F box = most(magnitude(eye.x) - 0.235f, magnitude(eye.y) - 0.175f);
    rim = most(magnitude(box) - 0.042f, magnitude(eye.z) - 0.03f);
  }
  return least(least(rim, temple), bridge);
}

template <Number F>
F Body::lens(Vec3Of<F> q) const {
  if (now_.glasses != Glasses::kSunglasses) return kFar;
  return ellipsoid(mirrored(q) - Vec3{eye_x_, 0.06f, kGlassesZ - 0.05f}, {0.27f, 0.21f, 0.10f});
}

template <Number F>
F Body::earring(Vec3Of<F> q) const {
  if (who_.earrings == 0) return kFar;
  return length(mirrored(q) - Vec3{0.80f * face_width_, -0.22f * ear_size_ - 0.10f, 0.0f}) - 0.115f;
}

template <Number F>
F Body::neck(Vec3Of<F> p) const {
  return capsule(p, {0, -0.60f, -0.12f}, {0, -1.45f, -0.22f}, 0.34f);
}

template <Number F>
F Body::clothes(Vec3Of<F> p) const {
  F d = torso_.distance(p);
  const Vec3Of<F> collar = p - Vec3{0, -1.36f, -0.18f};
  if (now_.clothes == Clothes::kStripedSweater) d = least(d, disc(collar, 0.46f, 0.20f, 0.1f));
  if (now_.clothes == Clothes::kHoodie) {
    d = smooth_min(d, length(length(collar.x, collar.z + 0.06f) - 0.56f, collar.y + 0.05f) - 0.20f, 0.08f);
  }
  if (now_.clothes == Clothes::kShirt) {
    d = least(d, most(disc(collar, 0.44f, 0.13f, 0.04f), 0.30f * collar.z - 0.10f - magnitude(collar.x) * 0.5f));
  }
  return d;
}

template <Number F, typename Visit>
void Body::visit_parts(Vec3Of<F> p, Visit&& visit) const {
  const Vec3Of<F> q = head_turn_.rotate(p);
  const auto upper = p.y > -1.25f, lower = p.y < -0.4f, anywhere = p.y < kFar;
  if (any(upper)) visit(Part::kSkin, skin(q), upper);
  visit(Part::kHair, hair(q), anywhere);
  if (any(upper)) {
    visit(Part::kBeard, beard(q), upper);
    visit(Part::kHat, hat(q), upper);
    visit(Part::kFrame, frame(q), upper);
    visit(Part::kLens, lens(q), upper);
    visit(Part::kEarring, earring(q), upper);
  }
  if (any(lower)) {
    visit(Part::kSkin, neck(p), lower);
    visit(Part::kClothes, clothes(to_body(p)), lower);
  }
}

Float4 Body::distance(Vec3x4 p) const {
  Float4 nearest = kFar;
  visit_parts(p, [&nearest](Part, Float4 d, Mask4 here) { nearest = select(here, least(nearest, d), nearest); });
  return nearest;
}

Part Body::part_at(Vec3 p) const {
  float nearest = kFar;
  Part found = Part::kSkin;
  visit_parts(p, [&](Part part, float d, bool here) {
    if (here && d < nearest) {
      nearest = d;
      found = part;
    }
  });
  return found;
}

}  // namespace sdtune::train::portrait
