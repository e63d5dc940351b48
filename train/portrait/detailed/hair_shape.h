// Hair and beard as signed distance fields over the head.
#pragma once

#include "train/portrait/detailed/face_measures.h"
#include "train/portrait/scene/portrait_math.h"

namespace sdtune::train::portrait {

inline constexpr float kHatLine = 0.42f;  // hair above it is under the hat
inline constexpr Vec3 kBunCenter{0, 1.17f, -0.26f};
inline constexpr float kBunRadius = 0.30f;

// How far q is inside the hair's edge on the skin, negative in the face: from the forehead a curve falls to the temples
// and down in front of the ears; short styles end at the nape.
template <Number F>
F inside_hair(const FaceMeasures& face, HairStyle style, Vec3Of<F> q) {
  const bool parted = style == HairStyle::kLong || style == HairStyle::kBob;
  const F x = magnitude(q.x) / face.width;
  // Long hair is parted: it starts higher in the middle and falls to both sides.
  const F over = parted ? q.y - (face.hairline + 0.09f - 0.95f * x * x) : q.y - (face.hairline + 0.02f - 0.35f * x * x);
  const F behind = q.z - (parted ? 0.22f : 0.13f) - 0.40f * q.y;
  const F scalp = smooth_max(over, -behind, 0.10f);
  if (parted) return scalp;
  const F lower = q.y + 0.42f - 0.9f * most(q.z + 0.25f, F(0.0f));
  return smooth_min(scalp, lower, 0.06f);
}

// How far q is inside the beard's edge on the skin, negative outside; far outside for no beard.
template <Number F>
F inside_beard(const FaceMeasures& face, FacialHair facial, Vec3Of<F> q) {
  const F x = magnitude(q.x), y = face.over_mouth(q.x, q.y);
  const float up = face.upper_lip, low = face.lower_lip + face.mouth_gap;
  switch (facial) {
    case FacialHair::kNone:
      break;
    case FacialHair::kMoustache: {
      const F t = x * (1.0f / (most(face.mouth_half_width, 0.21f) + 0.06f));
      const F s = least(t * t, F(1.0f));
      return least(0.074f * (1.0f - 0.50f * s) - magnitude(y - (up + 0.066f) + s * (0.65f * up + 0.055f)),
                   0.16f * (1.0f - t));
    }
    case FacialHair::kGoatee: {
      const float chin = 1.0f / (0.21f * (0.6f + 0.4f * face.chin));
      const F tuft = 0.20f - 0.20f * length(x * chin, (q.y + 0.83f * face.length) * (1.0f / 0.215f));
      const F patch = 0.045f - length(x, (y + low + 0.05f) * 0.6f);
      return least(most(tuft, patch), -y - low - 0.015f);
    }
    case FacialHair::kBeard: {
      const F top = q.y + 0.36f - 0.16f * x - 1.1f * most(x - 0.42f, F(0.0f));
      const float half = 0.5f * (up + low) + 0.010f, middle = 0.5f * (up - low);
      const F mouth =
          half * (length((y - middle) * (1.0f / half), x * (1.0f / (face.mouth_half_width + 0.02f))) - 1.0f);
      return least(least(-top, mouth), least(0.7f * (q.z - 0.02f), 0.7f * (q.y + 0.97f * face.length)));
    }
  }
  return F(-1.0f);
}

class HairShape {
 public:
  HairShape(const Identity& who, const Context& now, const FaceMeasures& face);

  bool has_hair() const { return style_ != HairStyle::kBald; }
  bool has_beard() const { return facial_ != FacialHair::kNone; }
  // q in head coordinates; `skull` is the skull's distance there.
  Float4 hair(Vec3x4 q, Float4 skull) const;
  Float4 beard(Vec3x4 q, Float4 skin) const;  // `skin` is the head's distance there

 private:
  Float4 volume(Vec3x4 q, Float4 skull, Float4 inside) const;

  HairStyle style_;
  FacialHair facial_;
  bool covered_;  // by a hat
  FaceMeasures face_;
  Ellipsoid curtain_, bob_, crest_, quiff_;
};

}  // namespace sdtune::train::portrait
