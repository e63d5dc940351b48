#include "train/portrait/detailed/hair_shape.h"

namespace sdtune::train::portrait {
namespace {

constexpr float kUnder = 0.014f;  // at its edge, hair is so far under the skin

// How much of its thickness the hair has at a distance from its edge: it lies flat there and rises over `width`.
Float4 grown(Float4 inside, float width) {
  const Float4 left = 1.0f - saturate(inside * (1.0f / width));
  return 1.0f - left * left;
}

// The same for hair that stands: a quarter of a circle.
Float4 standing(Float4 inside, float width) {
  return root(grown(inside, width));
}

// Outside its edge, hair sinks under the skin, where that is hollow too.
Float4 sunk(Float4 inside) {
  return kUnder + 0.6f * most(-inside, Float4(0.0f));
}

}  // namespace

HairShape::HairShape(const Identity& who, const Context& now, const FaceMeasures& face)
    : style_(who.hair_style), facial_(who.facial_hair), covered_(now.hat != Hat::kNone), face_(face) {
  const float w = face.width;
  curtain_ = Ellipsoid::of({0, -0.46f, -0.24f}, {0.88f * w, 1.22f, 0.56f});
  bob_ = Ellipsoid::of({0, 0.00f, -0.14f}, {0.93f * w, 0.98f, 0.80f});
  crest_ = Ellipsoid::of({0, 0.56f, -0.14f}, {0.15f, 0.90f, 0.93f});
  quiff_ = Ellipsoid::of({0.08f, 0.99f, 0.36f}, {0.55f * w, 0.27f, 0.42f});
}

// The volume of each style over the scalp.
Float4 HairShape::volume(Vec3x4 q, Float4 skull, Float4 inside) const {
  const auto cap = [&](float thickness, float width) {
    return skull - thickness * grown(inside, width) + sunk(inside);
  };
  switch (style_) {
    case HairStyle::kBald:
      return kNowhere;
    case HairStyle::kShort: {
      const Float4 tufts = sine_of_turns(q.x * 2.6f + q.z * 0.9f) * sine_of_turns(q.z * 2.3f - q.x * 0.9f + q.y) +
                           0.6f * sine_of_turns(q.x * 5.3f - q.z * 2.1f + 1.7f * q.y);
      return cap(0.140f, 0.40f) + 0.020f * tufts * saturate(inside * 5.0f);
    }
    case HairStyle::kAfro: {
      const Float4 coarse =
          sine_of_turns(q.x * 1.9f + 0.2f * q.y) * sine_of_turns(q.y * 1.9f) * sine_of_turns(q.z * 1.9f);
      const Float4 fine =
          sine_of_turns(q.x * 5.1f + q.z) * sine_of_turns(q.y * 4.7f - 0.3f * q.x) * sine_of_turns(q.z * 4.9f);
      return 0.75f * (skull - 0.39f * standing(inside, 0.55f) + sunk(inside) -
                      (0.035f * coarse + 0.028f * fine) * saturate(inside * 8.0f));
    }
    case HairStyle::kLong: {
      const Float4 wave = 0.022f * sine_of_turns(q.y * 0.75f + q.z) + 0.014f * sine_of_turns(q.x * 3.1f + q.y * 0.4f);
      const Float4 curtain = smooth_max(curtain_.distance(q) + wave, -inside, 0.10f);
      return smooth_min(cap(0.13f, 0.40f), curtain, 0.10f);
    }
    case HairStyle::kBob: {
      const Float4 wave = 0.016f * sine_of_turns(q.x * 2.7f + q.z * 1.1f);
      const Float4 ball = smooth_max(bob_.distance(q) + wave, -inside, 0.12f);
      return smooth_max(smooth_min(cap(0.14f, 0.36f), ball, 0.10f), -0.66f - q.y + 0.10f * q.z, 0.10f);
    }
    case HairStyle::kBun:
      return least(cap(0.065f, 0.30f),
                   length(q - kBunCenter) - kBunRadius - 0.012f * sine_of_turns(q.x * 3.0f + q.y * 4.0f));
    case HairStyle::kMohawk: {
      const Float4 spikes = 0.035f * sine_of_turns(q.z * 3.3f + q.y * 2.1f);
      return smooth_max(crest_.distance(q) + spikes, -inside - 0.03f, 0.08f);
    }
    case HairStyle::kQuiff: {
      const Float4 comb = 0.016f * sine_of_turns(q.x * 4.2f + 0.8f * q.z);
      const Float4 front = smooth_max(quiff_.distance(q) + comb, -inside, 0.10f);
      return smooth_min(cap(0.055f, 0.25f), front, 0.12f);
    }
  }
  return kNowhere;
}

Float4 HairShape::hair(Vec3x4 q, Float4 skull) const {
  if (!has_hair()) return kNowhere;
  const Float4 d = volume(q, skull, inside_hair(face_, style_, q));
  return covered_ ? most(d, q.y - kHatLine) : d;
}

Float4 HairShape::beard(Vec3x4 q, Float4 skin) const {
  const Float4 inside = inside_beard(face_, facial_, q);
  const Float4 lower = saturate(-2.0f * (q.y + 0.45f * face_.length));
  const Float4 locks = 0.010f * sine_of_turns(q.x * 5.0f + q.z) * sine_of_turns(q.y * 2.5f + 2.0f * q.x);
  switch (facial_) {
    case FacialHair::kNone:
      return kNowhere;
    case FacialHair::kMoustache:
      return skin - 0.062f * grown(inside, 0.05f) + sunk(inside);
    case FacialHair::kGoatee:
      return skin - (0.045f + 0.055f * lower) * grown(inside, 0.15f) + sunk(inside) + locks * saturate(inside * 8.0f);
    case FacialHair::kBeard:
      return skin - (0.036f + 0.085f * lower) * grown(inside, 0.14f) + sunk(inside) + locks * saturate(inside * 8.0f);
  }
  return kNowhere;
}

}  // namespace sdtune::train::portrait
