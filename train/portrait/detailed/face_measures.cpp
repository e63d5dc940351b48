#include "train/portrait/detailed/face_measures.h"

namespace sdtune::train::portrait {
namespace {

// What an expression changes.
struct Mimic {
  float upper_lid = 1, lower_lid = 1;  // factors of the lids' heights
  float mouth_width = 0.235f, bend = 0.10f, gap = 0;
  float brow_lift = 0, brow_slope = 0;
  float smile = 0;
};

Mimic mimic_of(Expression expression) {
  switch (expression) {
    case Expression::kNeutral:
      return {};
    case Expression::kSmile:
      return {.upper_lid = 0.92f,
              .lower_lid = 0.70f,
              .mouth_width = 0.285f,
              .bend = 1.35f,
              .gap = 0.040f,
              .brow_lift = 0.01f,
              .smile = 0.7f};
    case Expression::kLaugh:
      return {.upper_lid = 0.74f,
              .lower_lid = 0.45f,
              .mouth_width = 0.310f,
              .bend = 1.30f,
              .gap = 0.165f,
              .brow_lift = 0.03f,
              .smile = 1.0f};
    case Expression::kSad:
      return {.upper_lid = 0.78f,
              .lower_lid = 0.95f,
              .mouth_width = 0.215f,
              .bend = -1.75f,
              .gap = 0,
              .brow_lift = 0.015f,
              .brow_slope = -0.52f};
    case Expression::kSurprised:
      return {
          .upper_lid = 1.42f, .lower_lid = 1.15f, .mouth_width = 0.140f, .bend = 0, .gap = 0.135f, .brow_lift = 0.115f};
  }
  return {};
}

}  // namespace

// The ranges are about twice what seems natural at first: a gentler identity cannot be told from an image.
FaceMeasures::FaceMeasures(const Identity& who, const Context& now) {
  const Mimic mimic = mimic_of(now.expression);
  width = 1 + 0.17f * who.face_width;
  length = 1 + 0.11f * who.face_length;
  jaw = 1 + 0.23f * who.jaw_width;
  chin = 1 + 0.42f * who.chin_width;
  const float size = 1 + 0.25f * who.eye_size;
  eye_x = 0.305f * (1 + 0.19f * who.eye_distance);
  eye_y = 0.075f;
  eye_half_width = 0.153f * (1 + 0.6f * (size - 1));
  upper_lid = 0.067f * size * mimic.upper_lid;
  lower_lid = 0.052f * size * mimic.lower_lid;
  eyeball_radius = 0.200f;
  const float across = eye_x / (0.68f * width);
  eyeball_z = 0.84f * root(most(1.0f - across * across - 0.08f, 0.1f)) - 0.10f - eyeball_radius + 0.038f;
  iris_radius = 0.090f * (1 + 0.5f * (size - 1));
  brow_y = 0.270f + 0.02f * who.brow_thickness + 0.4f * (size - 1) * 0.08f + mimic.brow_lift;
  brow_slope = 0.24f * who.brow_slope + mimic.brow_slope;
  brow_arch = 1.15f;
  brow_half_height = 0.042f * (1 + 0.62f * who.brow_thickness);
  mouth_y = -0.475f * length;
  mouth_half_width = mimic.mouth_width * (1 + 0.08f * who.lip_size);
  mouth_bend = mimic.bend;
  mouth_gap = mimic.gap;
  wrinkles = smoothstep(0.35f, 1.0f, who.age);
  const float lips = (1 + 0.48f * who.lip_size) * (1 - 0.25f * wrinkles) * (1 - 0.15f * mimic.smile);
  upper_lip = 0.058f * lips;
  lower_lip = 0.075f * lips;
  nose_y = -0.185f - 0.055f * who.nose_length;
  nose_z = 0.885f + 0.085f * who.nose_length;
  nose_width = 1 + 0.42f * who.nose_width;
  ear = 1 + 0.40f * who.ear_size;
  smile = mimic.smile;
  hairline = 0.66f + 0.11f * who.hairline + 0.04f * wrinkles;
}

float FaceMeasures::upper_lid_at(float along) const {
  const float s = along * along;
  return upper_lid * (1 - s) * (1 + 0.35f * s) * (1 - 0.16f * along) + 0.016f * along;
}

float FaceMeasures::lower_lid_at(float along) const {
  const float s = along * along;
  return -lower_lid * (1 - s) * (1 + 0.20f * s) * (1 + 0.22f * along) + 0.016f * along;
}

}  // namespace sdtune::train::portrait
