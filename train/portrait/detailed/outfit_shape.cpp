#include "train/portrait/detailed/outfit_shape.h"

#include "train/portrait/detailed/head_shape.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kGlassesY = 0.065f;
constexpr float kWire = 0.017f;  // radius

}  // namespace

OutfitShape::OutfitShape(const Identity& who, const Context& now, const FaceMeasures& face)
    : hat_(now.hat), glasses_(now.glasses), clothes_(now.clothes), earrings_(who.earrings), face_(face) {
  const float w = face.width;
  glasses_z_ = most(face.eyeball_z + face.eyeball_radius + 0.13f, 0.78f);
  beanie_ = Ellipsoid::of({0, 0.40f, -0.11f}, {0.83f * w, 0.82f, 0.97f});
  cap_ = Ellipsoid::of({0, 0.38f, -0.11f}, {0.80f * w, 0.78f, 0.96f});
  bill_ = Ellipsoid::of({0, 0.47f, 0.84f}, {0.58f * w, 0.085f, 0.54f});
  torso_ = Ellipsoid::of({0, -2.52f, -0.25f}, {1.36f, 1.12f, 0.66f});
}

Float4 OutfitShape::hat(Vec3x4 q) const {
  const Vec3x4 c = q - Vec3{0, 0, -0.10f};
  const float w = face_.width;
  const Vec3x4 round{c.x * (1.0f / w), c.y, c.z * (1.0f / 1.14f)};
  switch (hat_) {
    case Hat::kNone:
      return kNowhere;
    case Hat::kBeanie: {
      const Float4 ribs = 0.011f * sine_of_turns(q.x * 6.5f / w);
      const Float4 dome = most(beanie_.distance(q), 0.40f - q.y) - ribs;
      const Vec3x4 fold{round.x, c.y - 0.47f, c.z / 1.10f};
      const Float4 bobble = length(c - Vec3{0, 1.30f, 0}) - 0.17f -
                            0.018f * sine_of_turns(q.x * 7.0f) * sine_of_turns(q.y * 7.0f) * sine_of_turns(q.z * 7.0f);
      return least(least(dome, disc(fold, 0.86f, 0.145f, 0.07f) - 0.7f * ribs), bobble);
    }
    case Hat::kCap: {
      const Float4 dome = smooth_max(cap_.distance(q), 0.40f - q.y, 0.03f);
      // The bill is bent downwards at its sides.
      const Vec3x4 bent{q.x, q.y + 0.30f * q.x * q.x, q.z};
      const Float4 bill = smooth_max(bill_.distance(bent), magnitude(bent.y - 0.46f) - 0.030f, 0.02f);
      return least(smooth_min(dome, bill, 0.03f), length(c - Vec3{0, 1.17f, 0}) - 0.05f);
    }
    case Hat::kTopHat: {
      const Vec3x4 brim{round.x, round.y - 0.46f - 0.06f * round.x * round.x, round.z};
      // A little wider at the top than over the ears.
      const Float4 widening = 1.0f + 0.08f * (round.y - 0.6f);
      const Vec3x4 crown{round.x / widening, round.y - 1.00f, round.z / widening};
      return smooth_min(disc(crown, 0.735f, 0.58f, 0.05f), disc(brim, 1.08f, 0.035f, 0.03f), 0.04f);
    }
    case Hat::kWideHat: {
      const Float4 wave = 0.035f * sine_of_turns(q.x * 0.5f + q.z * 0.35f);
      const Vec3x4 brim{round.x, round.y - 0.46f + wave - 0.05f * round.x * round.x, round.z};
      const Float4 dent = 0.10f * saturate(1.0f - 9.0f * round.x * round.x);  // along the crown's top
      const Vec3x4 crown{round.x, round.y - 0.70f + dent * saturate(round.y - 0.5f) * 2.0f, round.z};
      return smooth_min(disc(crown, 0.78f, 0.32f, 0.17f), disc(brim, 1.50f, 0.035f, 0.03f), 0.06f);
    }
  }
  return kNowhere;
}

float OutfitShape::lens_outline(float x, float y) const {
  const float ax = std::abs(x) - face_.eye_x, ay = y - kGlassesY + 0.015f;
  switch (glasses_) {
    case Glasses::kNone:
      return kNowhere;
    case Glasses::kRound:
      return length(ax, ay) - 0.215f;
    case Glasses::kSquare:
      return smooth_max(std::abs(ax) - 0.225f, std::abs(ay) - 0.160f, 0.08f);
    case Glasses::kSunglasses:
      return length(ax / 0.255f, (ay + 0.01f) / 0.195f) - 1.0f;
  }
  return kNowhere;
}

Float4 OutfitShape::frame(Vec3x4 q) const {
  if (glasses_ == Glasses::kNone) return kNowhere;
  const Vec3x4 m = mirrored(q);
  const float z = glasses_z_;
  const Vec3x4 eye = m - Vec3{face_.eye_x, kGlassesY - 0.015f, z};
  const Vec3x4 curved{eye.x, eye.y, eye.z + 0.25f * eye.x * (eye.x + 0.4f)};  // the frame follows the face
  const float out = glasses_ == Glasses::kSquare ? 0.23f : 0.21f;
  Float4 d = capsule(m, {face_.eye_x + out, 0.10f, z - 0.03f}, {0.72f * face_.width, 0.10f, -0.02f}, kWire);
  const Vec3x4 arched{m.x, m.y + 1.2f * m.x * m.x, m.z};
  d = least(d, capsule(arched, {0, 0.115f, z + 0.035f}, {face_.eye_x - out + 0.02f, 0.115f, z}, kWire));
  if (glasses_ == Glasses::kRound) d = least(d, ring(curved, 0.215f, kWire * 1.15f));
  if (glasses_ == Glasses::kSquare) {
    const Float4 box = smooth_max(magnitude(eye.x) - 0.225f, magnitude(eye.y) - 0.160f, 0.08f);
    d = least(d, length(box, curved.z) - kWire * 1.3f);
  }
  if (glasses_ == Glasses::kSunglasses) {
    const Float4 oval = (length(eye.x / 0.255f, (eye.y + 0.01f) / 0.195f) - 1.0f) * 0.2f;
    d = least(d, length(oval, curved.z) - kWire);
  }
  return d;
}

Float4 OutfitShape::lens(Vec3x4 q) const {
  if (glasses_ != Glasses::kSunglasses) return kNowhere;
  const Vec3x4 eye = mirrored(q) - Vec3{face_.eye_x, kGlassesY - 0.025f, glasses_z_};
  const Float4 bulge = eye.z + 0.25f * eye.x * (eye.x + 0.4f) + 0.35f * (eye.x * eye.x + eye.y * eye.y);
  const Float4 oval = (length(eye.x / 0.255f, eye.y / 0.195f) - 1.0f) * 0.19f;
  return smooth_max(oval, magnitude(bulge) - 0.012f, 0.01f);
}

Vec3 OutfitShape::lobe() const {
  return {0.685f * face_.width + 0.035f, -0.185f * face_.ear - 0.03f, 0.02f};
}

Vec3 OutfitShape::earring_middle() const {
  const Vec3 at = lobe();
  return {at.x + 0.010f, at.y - 0.145f, at.z};
}

// A small stud over a drop, on both lobes.
Float4 OutfitShape::earring(Vec3x4 q) const {
  if (earrings_ == 0) return kNowhere;
  const Vec3x4 at = mirrored(q) - lobe();
  return least(length(at) - 0.050f, ellipsoid(at - Vec3{0.010f, -0.145f, 0}, {0.072f, 0.098f, 0.072f}));
}

Float4 OutfitShape::torso(Vec3x4 p) const {
  const Vec3x4 m = mirrored(p);
  Float4 d = torso_.distance(p);
  d = smooth_min(d, capsule(m, {0.20f, -1.42f, -0.24f}, {0.98f, -1.76f, -0.22f}, 0.20f), 0.22f);
  return smooth_min(d, capsule(m, {1.08f, -1.90f, -0.20f}, {1.30f, -2.7f, -0.2f}, 0.26f), 0.15f);
}

Float4 OutfitShape::clothes(Vec3x4 p) const {
  Float4 d = torso(p);
  const Float4 folds = 0.012f * sine_of_turns(p.x * 0.9f + p.y * 1.3f) * sine_of_turns(p.y * 0.8f - 0.5f * p.x);
  d = d + folds;
  const Vec3x4 collar = p - Vec3{0, -1.36f, -0.17f};
  // A tilted ring around the neck: lower in front.
  const Vec3x4 tilted{collar.x, collar.y + 0.28f * collar.z, collar.z};
  const Float4 around = length(tilted.x, tilted.z);
  switch (clothes_) {
    case Clothes::kTShirt:
      return least(d, length(around - 0.44f, tilted.y + 0.06f) - 0.038f);
    case Clothes::kStripedSweater: {
      const Float4 ribs = 0.006f * sine_of_turns(collar.x * 7.0f);
      const Float4 roll = length(around - 0.385f, (tilted.y - 0.02f) * 0.55f) - 0.075f - ribs;
      return smooth_min(d, roll, 0.05f);
    }
    case Clothes::kHoodie: {
      // The hood lies thick on the shoulders and behind the neck.
      const Float4 back = saturate(0.45f - 0.9f * collar.z);
      const Float4 hood = length(around - 0.53f, tilted.y + 0.06f - 0.12f * back) - (0.095f + 0.085f * back);
      return smooth_min(d, hood, 0.08f);
    }
    case Clothes::kShirt:
    case Clothes::kJacket: {
      // A folded collar: a band whose front is open and whose points lie on the chest.
      const Float4 out = around - 0.36f - 0.34f * saturate(0.10f - tilted.y);
      const Float4 band = most(magnitude(out) - 0.030f, magnitude(tilted.y + 0.01f) - 0.13f);
      const Float4 open = 0.165f + 0.55f * tilted.y;
      const Float4 gap = most(-collar.z, magnitude(collar.x) - most(open, Float4(0.02f)));
      d = least(d, smooth_max(band, -gap, 0.02f) - 0.008f);
      if (clothes_ == Clothes::kShirt) return d;
      // Lapels: two slabs that meet over the tie.
      const Float4 edge = magnitude(p.x) - (0.40f * (p.y + 2.35f) + 0.02f);
      const Float4 lapel = most(most(d - 0.035f, -edge), most(edge - 0.20f, -p.z));
      return least(d, lapel);
    }
  }
  return d;
}

}  // namespace sdtune::train::portrait
